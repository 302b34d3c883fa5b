"""Leases at a new root of what clients of fronts had from the last one: acks that a confirm proves are for good."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.broker.leases.lease import Lease
from tests.unit.broker.conversation import Peer, World
from tests.unit.broker.lease_scene import Lessee
from tests.unit.cluster.proxy.pipe_world import Cluster, FrontWorld
from tests.unit.cluster.proxy.test_proofs import PERSISTENT, consuming, heard_of, left


def found_without(cluster: Cluster) -> tuple[World, FrontWorld]:
    """The next root; the front does not find it for now."""
    cluster.lose_root()
    away = cluster.fronts.pop()
    return cluster.find_root(), away


def come_back(cluster: Cluster, away: FrontWorld) -> None:
    cluster.fronts.append(away)
    cluster.pass_time(2_000)


def leases(root: World) -> list[Lease]:
    return list(root.broker.state.leases)


def acked_on_the_way(cluster: Cluster, peer: Peer, tag: int) -> None:
    """The front takes it, and the root never hears of it."""
    pipes = list(cluster.front.pipes)
    cluster.front.pipes.clear()
    peer.send(methods.BasicAck(tag, False))
    cluster.front.pipes += pipes


@pytest.mark.proves("R29")
def test_a_new_root_leases_nothing_before_it_knows_which_messages_were_acked() -> None:
    cluster = Cluster()
    peer = consuming(cluster)
    acked_on_the_way(cluster, peer, 1)
    root, away = found_without(cluster)
    root.broker.held.publishes_wait = True
    lessee = Lessee(root)
    view = lessee.lease()
    assert (view.end_offset - view.first_offset, view.more) == (0, True), "who leases is told to ask again"
    cluster.fronts.append(away)
    # Its client would have the rest at once.
    peer.send(methods.BasicCancel("t"))
    cluster.pass_time(2_000)
    assert not root.broker.held.publishes_wait
    peer.publish("", "proofs", b"", PERSISTENT)
    lessee.lease()
    assert lessee.read() == [b"1"]


@pytest.mark.parametrize("confirms", [True, False])
def test_an_ack_of_a_message_that_is_leased_by_now_is_not_proven(confirms: bool) -> None:
    cluster = Cluster()
    peer = consuming(cluster, confirms=confirms)
    root, away = found_without(cluster)
    lessee = Lessee(root)
    lessee.lease()
    assert lessee.read() == [b"0", b"1"]
    come_back(cluster, away)
    assert heard_of(peer) == ([], [])
    peer.send(methods.BasicAck(1, False))
    delivered, others = heard_of(peer)
    if confirms:
        assert [type(method) for method in others] == [methods.ChannelClose]
        assert "leased now" in others[0].reply_text  # type: ignore[attr-defined]
    else:
        assert (delivered, others) == ([], [])
    lessee.end()
    assert not leases(root) and left(cluster) == 2


@pytest.mark.proves("R29")
def test_a_message_that_a_lease_gave_back_has_its_old_place_and_can_be_acked() -> None:
    cluster = Cluster()
    peer = consuming(cluster)
    root, away = found_without(cluster)
    lessee = Lessee(root)
    lessee.lease()
    lessee.end()
    assert not leases(root) and left(cluster) == 2
    come_back(cluster, away)
    assert heard_of(peer) == ([(b"0", True), (b"1", True)], [])
    peer.send(methods.BasicAck(1, False))
    peer.publish("", "proofs", b"", PERSISTENT)
    assert heard_of(peer) == ([], [methods.BasicAck(1, False)])
    assert left(cluster) == 1
    cluster.change_root()
    assert heard_of(peer) == ([(b"1", True)], [])


def test_a_message_that_a_lease_has_released_is_acked_already() -> None:
    cluster = Cluster()
    peer = consuming(cluster)
    root, away = found_without(cluster)
    lessee = Lessee(root)
    lessee.release(lessee.lease().end_offset)
    come_back(cluster, away)
    peer.send(methods.BasicAck(2, True))
    peer.publish("", "proofs", b"", PERSISTENT)
    assert heard_of(peer) == ([], [methods.BasicAck(1, False)])
    assert left(cluster) == 0
