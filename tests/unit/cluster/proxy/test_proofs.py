"""Acks of clients of fronts when the root changes: what is acked does not come back, and a confirm proves it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pandomq import methods
from pandomq.cluster.proxy.limits import SETTLED_ASK_COUNT
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer
from tests.unit.cluster.proxy.pipe_world import Cluster, FrontWorld
from tests.unit.cluster.proxy.test_consumers import deliveries

PERSISTENT = Properties(delivery_mode=2)


def consuming(cluster: Cluster, *, confirms: bool = True, count: int = 2) -> Peer:
    peer = cluster.front.peer()
    peer.declare("q", durable=True)
    peer.declare("proofs", durable=True)
    for number in range(count):
        peer.say_publish("", "q", b"%d" % number, PERSISTENT)
    peer.flush()
    if confirms:
        peer.call(methods.ConfirmSelect(False), expect=methods.ConfirmSelectOk)
    peer.consume()
    assert [body for _, body, _ in deliveries(peer)] == [b"%d" % number for number in range(count)]
    return peer


def lose_on_the_way(front: FrontWorld, peer: Peer, said: Sequence[methods.Method]) -> None:
    """The client says it, the front takes it, and the root never hears of it."""
    cluster, pipes = front.cluster, list(front.pipes)
    front.pipes.clear()
    peer.send(*said)
    front.pipes += pipes
    cluster.lose_root()
    cluster.find_root()


def heard_of(peer: Peer) -> tuple[list[tuple[bytes, bool]], list[methods.Method]]:
    """Deliveries (body, redelivered), and all else."""
    heard = peer.hear()
    delivered = [(one.body, one.method.redelivered) for one in heard if isinstance(one.method, methods.BasicDeliver)]
    return delivered, [one.method for one in heard if not isinstance(one.method, methods.BasicDeliver)]


def left(cluster: Cluster) -> int:
    """Messages that are in the queue, or in somebody's hands."""
    assert cluster.root is not None
    queue = cluster.root.broker.state.vhosts["/"].queues["q"].kernel
    return queue.ready_count + queue.unacked_count


@pytest.mark.proves("R28", "R29")
@pytest.mark.parametrize("confirms", [True, False])
def test_acks_that_died_with_the_root_count_at_the_next_one(confirms: bool) -> None:
    cluster = Cluster()
    peer = consuming(cluster, confirms=confirms, count=4)
    lose_on_the_way(cluster.front, peer, [methods.BasicAck(1, False), methods.BasicReject(3, False)])
    assert heard_of(peer) == ([(b"1", True), (b"3", True)], [])
    assert left(cluster) == 2


@pytest.mark.proves("R28", "R29")
def test_the_channel_goes_on_with_confirms_that_prove_acks() -> None:
    cluster = Cluster()
    peer = consuming(cluster)
    pipes = list(cluster.front.pipes)
    cluster.front.pipes.clear()
    peer.send(methods.BasicAck(1, False))
    peer.publish("", "proofs", b"", PERSISTENT)
    cluster.front.pipes += pipes
    assert heard_of(peer) == ([], [])
    cluster.change_root()
    assert heard_of(peer) == ([(b"1", True)], [methods.BasicAck(1, False)])
    cluster.change_root()
    assert heard_of(peer) == ([(b"1", True)], [])
    assert left(cluster) == 1


def test_an_ack_that_was_in_the_log_is_not_done_twice() -> None:
    cluster = Cluster()
    peer = consuming(cluster)
    peer.send(methods.BasicAck(1, False))
    for _ in range(3):
        cluster.change_root()
        assert heard_of(peer) == ([(b"1", True)], [])
    assert left(cluster) == 1


@pytest.mark.proves("R28")
@pytest.mark.parametrize("again", ["ack", "nack", "nothing"])
def test_a_delivery_of_an_earlier_root_can_be_acked_for_good(again: str) -> None:
    cluster = Cluster()
    peer = consuming(cluster)
    cluster.change_root()
    assert heard_of(peer) == ([(b"0", True), (b"1", True)], [])
    peer.send(methods.BasicAck(1, False))
    assert left(cluster) == 1
    if again != "nothing":
        peer.send(methods.BasicAck(3, False) if again == "ack" else methods.BasicNack(3, False, True))
    assert heard_of(peer) == ([], [])
    peer.publish("", "proofs", b"", PERSISTENT)
    assert heard_of(peer) == ([], [methods.BasicAck(1, False)])
    peer.call(methods.ChannelClose(200, "", 0, 0), expect=methods.ChannelCloseOk)
    assert cluster.front.peer().counts() == (1, 0)


def test_a_delivery_of_an_earlier_root_can_be_acked_when_another_client_has_it_now() -> None:
    cluster = Cluster("b", "c")
    peer = consuming(cluster)
    other = cluster.fronts[1].peer()
    cluster.lose_root()
    # Only the other one finds the next root for now.
    away, cluster.fronts = cluster.fronts[0], cluster.fronts[1:]
    cluster.find_root()
    other.consume("q", "other")
    assert [body for _, body, _ in deliveries(other)] == [b"0", b"1"]
    cluster.fronts.insert(0, away)
    cluster.pass_time(2_000)
    peer.send(methods.BasicAck(2, False))
    assert left(cluster) == 1
    other.send(methods.BasicNack(2, True, True))
    assert sorted(body for body, _ in heard_of(peer)[0] + heard_of(other)[0]) == [b"0"]


def test_a_delivery_of_an_earlier_root_can_be_requeued() -> None:
    cluster = Cluster()
    peer = consuming(cluster)
    cluster.change_root()
    peer.send(methods.BasicNack(2, True, True))
    assert heard_of(peer) == ([(b"0", True), (b"1", True)], [])
    assert left(cluster) == 2


def test_a_queue_of_the_same_name_is_another_one() -> None:
    cluster = Cluster()
    peer = consuming(cluster)
    other = cluster.front.peer()
    other.call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk)
    other.declare("q", durable=True)
    for body in (b"new", b"newer"):
        other.publish("", "q", body, PERSISTENT)
    lose_on_the_way(cluster.front, peer, [methods.BasicAck(2, True)])
    assert left(cluster) == 2


def test_gets_are_acked_like_deliveries() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    for name in ("q", "other"):
        peer.declare(name, durable=True)
        for body in (b"0", b"1"):
            peer.publish("", name, body, PERSISTENT)
    assert [peer.get(name, no_ack=False) is not None for name in ("q", "other", "q")] == [True, True, True]
    lose_on_the_way(cluster.front, peer, [methods.BasicAck(2, True)])
    assert left(cluster) == 1
    assert [peer.get("q").body, peer.get("other").body] == [b"1", b"1"]  # type: ignore[union-attr]
    assert (peer.get("q"), peer.get("other")) == (None, None)


def test_the_root_is_asked_now_and_then_how_far_its_log_is() -> None:
    cluster = Cluster(late=True)
    assert cluster.root is not None
    peer = cluster.front.peer()
    peer.send(methods.QueueDeclare("q", durable=True))
    cluster.root.commit()
    peer.hear()
    for number in range(SETTLED_ASK_COUNT + 10):
        peer.say_publish("", "q", b"%d" % number, PERSISTENT)
    peer.flush()
    peer.consume()
    assert len(deliveries(peer)) == SETTLED_ASK_COUNT + 10
    channel = next(iter(cluster.front.broker.clients)).channels[1].kernel
    peer.send(methods.BasicAck(SETTLED_ASK_COUNT - 1, True))
    peer.send(methods.BasicAck(SETTLED_ASK_COUNT + 5, True))
    assert channel.unproven_count == SETTLED_ASK_COUNT + 5
    cluster.root.commit()
    cluster.settle()
    assert channel.unproven_count == 0


@pytest.mark.parametrize("confirms", [True, False])
def test_an_ack_of_a_lost_message_that_comes_again_is_not_proven(confirms: bool) -> None:
    cluster = Cluster(late=True)
    assert cluster.root is not None
    peer, publisher = cluster.front.peer(), cluster.front.peer()
    peer.send(methods.QueueDeclare("q", durable=True))
    publisher.send(methods.ConfirmSelect(False))
    if confirms:
        peer.send(methods.ConfirmSelect(False))
    cluster.root.commit()
    cluster.settle()
    peer.consume()
    peer.hear()
    publisher.publish("", "q", b"early", PERSISTENT)
    assert heard_of(peer)[0] == [(b"early", False)]
    peer.send(methods.BasicAck(1, False))
    cluster.change_root()
    delivered, others = heard_of(peer)
    if confirms:
        assert [type(method) for method in others] == [methods.ChannelClose]
    else:
        assert (delivered, others) == ([(b"early", True)], [])


def test_an_ack_is_not_proven_if_its_number_went_to_another_message_of_a_lost_root() -> None:
    cluster = Cluster(late=True)
    assert cluster.root is not None
    peer, publisher = cluster.front.peer(), cluster.front.peer()
    peer.send(methods.QueueDeclare("q", durable=True), methods.ConfirmSelect(False))
    publisher.send(methods.ConfirmSelect(False))
    cluster.root.commit()
    cluster.settle()
    peer.consume()
    peer.hear()
    publisher.publish("", "q", b"early", PERSISTENT)
    assert heard_of(peer)[0] == [(b"early", False)]
    for _ in range(2):
        # The first of them never had it, and is sent it again; both keep it under the same number.
        root = cluster.change_root()
        root.commit()
        cluster.settle()
        assert heard_of(peer)[0] == [(b"early", True)]
    peer.send(methods.BasicAck(1, False))
    assert [type(method) for method in heard_of(peer)[1]] == [methods.ChannelClose]
    assert left(cluster) == 1
