"""What a confirm proves of the acks before it, when the root changes in between."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.cluster.proxy.proofs import IN_DOUBT
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer
from tests.unit.cluster.proxy.pipe_world import Cluster
from tests.unit.cluster.proxy.test_consumers import deliveries

PERSISTENT = Properties(delivery_mode=2)


def consuming(cluster: Cluster, *, confirms: bool) -> Peer:
    peer = cluster.front.peer()
    peer.declare("q", durable=True)
    peer.declare("proofs", durable=True)
    for body in (b"0", b"1"):
        peer.publish("", "q", body, PERSISTENT)
    if confirms:
        peer.call(methods.ConfirmSelect(False), expect=methods.ConfirmSelectOk)
    peer.consume()
    assert [body for _, body, _ in deliveries(peer)] == [b"0", b"1"]
    return peer


def closes(peer: Peer) -> list[str]:
    return [method.reply_text for method in peer.heard() if isinstance(method, methods.ChannelClose)]


@pytest.mark.proves("R28")
def test_an_ack_that_may_be_lost_closes_a_channel_whose_next_confirm_would_prove_it() -> None:
    cluster = Cluster()
    peer = consuming(cluster, confirms=True)
    peer.send(methods.BasicAck(1, False))
    cluster.change_root()
    assert closes(peer) == [f"PRECONDITION_FAILED - {IN_DOUBT}"]


def test_an_ack_that_was_proven_does_not() -> None:
    cluster = Cluster()
    peer = consuming(cluster, confirms=True)
    peer.send(methods.BasicAck(2, True))
    peer.publish("", "proofs", b"", PERSISTENT)
    cluster.change_root()
    assert closes(peer) == []


def test_nor_does_one_where_nothing_is_proven() -> None:
    cluster = Cluster()
    peer = consuming(cluster, confirms=False)
    peer.send(methods.BasicAck(1, False))
    cluster.change_root()
    assert closes(peer) == []


def test_what_an_earlier_root_delivered_cannot_be_acked_for_good() -> None:
    cluster = Cluster()
    peer = consuming(cluster, confirms=True)
    cluster.change_root()
    assert closes(peer) == []
    peer.send(methods.BasicAck(1, False))
    assert closes(peer) == [f"PRECONDITION_FAILED - {IN_DOUBT}"]


def test_but_it_can_be_given_back() -> None:
    cluster = Cluster()
    peer = consuming(cluster, confirms=True)
    cluster.change_root()
    peer.send(methods.BasicNack(2, True, True))
    assert closes(peer) == []
