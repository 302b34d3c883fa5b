"""Consumers of shared queues on fronts: the root delivers, the front passes on, and settles at the root."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.broker.limits import BrokerLimits
from tests.unit.broker.conversation import Peer, Received
from tests.unit.cluster.proxy.pipe_world import Cluster


def deliveries(peer: Peer) -> list[tuple[int, bytes, bool]]:
    """Tag, body, redelivered."""
    return [_delivery(heard) for heard in peer.hear() if isinstance(heard.method, methods.BasicDeliver)]


def _delivery(heard: Received) -> tuple[int, bytes, bool]:
    assert isinstance(heard.method, methods.BasicDeliver)
    return heard.method.delivery_tag, heard.body, heard.method.redelivered


def filled(cluster: Cluster, count: int, queue: str = "q", **traits: object) -> Peer:
    peer = cluster.front.peer()
    peer.declare(queue, **traits)
    for number in range(count):
        peer.say_publish("", queue, b"%d" % number)
    peer.flush()
    return peer


@pytest.mark.proves("R12", "R28")
def test_messages_consumed_and_acked_on_a_front_are_gone() -> None:
    cluster = Cluster()
    peer = filled(cluster, 3)
    peer.consume()
    assert peer.hear()[0].method == methods.BasicConsumeOk("t")
    peer = filled(cluster, 0)
    assert peer.counts() == (0, 1)


def test_acks_nacks_and_rejects_reach_the_root() -> None:
    cluster = Cluster()
    peer = filled(cluster, 5)
    peer.consume()
    assert [body for _, body, _ in deliveries(peer)] == [b"0", b"1", b"2", b"3", b"4"]
    peer.send(methods.BasicAck(2, True), methods.BasicReject(3, False), methods.BasicNack(5, True, True))
    assert deliveries(peer) == [(6, b"3", True), (7, b"4", True)]
    peer.send(methods.BasicAck(7, True))
    peer.call(methods.ChannelClose(200, "", 0, 0), expect=methods.ChannelCloseOk)
    assert cluster.front.peer().counts() == (0, 0)


def test_unacked_messages_go_back_with_channel_connection_and_recover() -> None:
    cluster = Cluster()
    peer = filled(cluster, 2)
    other = cluster.front.peer()
    peer.consume()
    assert len(deliveries(peer)) == 2
    peer.send(methods.BasicRecover(True))
    heard = peer.hear()
    assert heard[0].method == methods.BasicRecoverOk()
    assert [_delivery(one) for one in heard[1:]] == [(3, b"0", True), (4, b"1", True)]
    assert other.counts() == (0, 1)
    peer.call(methods.ChannelClose(200, "", 0, 0), expect=methods.ChannelCloseOk)
    assert other.counts() == (2, 0)
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
    peer.consume()
    assert len(deliveries(peer)) == 2
    peer.leave()
    assert other.counts() == (2, 0)


def test_an_unknown_tag_closes_the_channel_on_both_sides() -> None:
    cluster = Cluster()
    peer = filled(cluster, 1)
    peer.consume()
    peer.hear()
    peer.send(methods.BasicAck(7, False))
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose)
    assert (close.reply_code, close.failed_method_id) == (406, 80)
    assert cluster.front.peer().counts() == (1, 0)
    peer.reopen()
    peer.consume()
    assert deliveries(peer) == [(1, b"0", True)]


@pytest.mark.parametrize("is_global", [False, True])
def test_prefetch_counts_shared_and_private_queues(is_global: bool) -> None:
    cluster = Cluster()
    peer = filled(cluster, 5)
    peer.declare("mine", exclusive=True)
    for number in range(5):
        peer.publish("", "mine", b"m%d" % number)
    peer.call(methods.BasicQos(0, 2, is_global), expect=methods.BasicQosOk)
    peer.consume("q", "shared")
    peer.consume("mine", "private")
    first = deliveries(peer)
    assert len(first) == (2 if is_global else 4)
    for tag, _, _ in first:
        peer.send(methods.BasicAck(tag, False))
    second = deliveries(peer)
    assert len(second) == len(first)
    assert sorted(tag for tag, _, _ in first + second) == list(range(1, 2 * len(first) + 1))


def test_multiple_settles_shared_and_private_together() -> None:
    cluster = Cluster()
    peer = filled(cluster, 3)
    peer.declare("mine", exclusive=True)
    for number in range(3):
        peer.publish("", "mine", b"m%d" % number)
    peer.consume("q", "shared")
    peer.consume("mine", "private")
    tags = [tag for tag, _, _ in deliveries(peer)]
    peer.send(methods.BasicAck(tags[-1], True))
    peer.send(methods.BasicRecover(True))
    assert peer.heard() == [methods.BasicRecoverOk()]
    assert (peer.counts("q"), peer.counts("mine")) == ((0, 1), (0, 1))


def test_get_takes_from_the_root() -> None:
    cluster = Cluster()
    peer = filled(cluster, 3)
    first = peer.get(no_ack=False)
    assert first is not None
    assert first.method == methods.BasicGetOk(1, False, "", "q", 2)
    second = peer.get()
    assert second is not None
    assert second.method == methods.BasicGetOk(2, False, "", "q", 1)
    peer.send(methods.BasicNack(1, False, True))
    again = peer.get(no_ack=False)
    assert again is not None
    assert again.method == methods.BasicGetOk(3, True, "", "q", 1)
    peer.send(methods.BasicAck(3, False))
    assert peer.counts() == (1, 0)
    assert peer.get() is not None
    assert peer.get() is None


def test_a_cancelled_consumer_can_still_settle() -> None:
    cluster = Cluster()
    peer = filled(cluster, 2)
    peer.consume()
    assert len(deliveries(peer)) == 2
    peer.call(methods.BasicCancel("t"), expect=methods.BasicCancelOk)
    peer.publish("", "q", b"later")
    assert peer.hear() == []
    peer.send(methods.BasicAck(1, False), methods.BasicNack(2, False, True))
    assert peer.counts() == (2, 0)


def test_a_client_that_does_not_read_is_given_no_more() -> None:
    cluster = Cluster(limits=BrokerLimits(outgoing_bytes_max=10_000))
    peer = cluster.front.peer()
    peer.declare("q")
    for _ in range(100):
        peer.say_publish("", "q", b"x" * 1000)
    peer.flush()
    reader = cluster.front.peer()
    reader.consume()
    assert cluster.root is not None
    assert cluster.root.peer().counts()[0] > 0
    kept = sum(pipe.octets_down for pipe in cluster.front.pipes)
    assert kept < 60_000
    got = 0
    for _ in range(100):
        got += len(deliveries(reader))
        cluster.settle()
    assert got == 100


def test_cancel_gives_back_what_the_client_has_not_taken() -> None:
    cluster = Cluster(limits=BrokerLimits(outgoing_bytes_max=10_000))
    peer = cluster.front.peer()
    peer.declare("q")
    for _ in range(50):
        peer.say_publish("", "q", b"x" * 1000)
    peer.flush()
    reader = cluster.front.peer()
    reader.consume()
    reader.send(methods.BasicCancel("t"))
    got = len(deliveries(reader))
    for _ in range(5):
        cluster.settle()
        got += len(deliveries(reader))
    assert 0 < got < 50
    assert peer.counts() == (50 - got, 0)


def test_consumers_are_informed_that_their_queue_was_deleted() -> None:
    cluster = Cluster("b", "c")
    peer = filled(cluster, 1)
    peer.consume()
    peer.hear()
    untold = cluster.front.connect(notify=False)
    untold.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
    untold.consume(tag="u")
    untold.hear()
    cluster.fronts[1].peer().call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk)
    assert peer.heard() == [methods.BasicCancel("t", True)]
    assert untold.heard() == []
    peer.send(methods.BasicAck(1, False))
    assert peer.heard() == []


def test_single_active_and_exclusive_consumers_all_over_the_cluster() -> None:
    cluster = Cluster("b", "c")
    one, two = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    one.declare("s", arguments={"x-single-active-consumer": True})
    one.consume("s", no_ack=True)
    two.consume("s", no_ack=True)
    two.hear(), one.hear()
    two.publish("", "s", b"first")
    assert (one.bodies(), two.bodies()) == ([b"first"], [])
    one.call(methods.BasicCancel("t"), expect=methods.BasicCancelOk)
    one.publish("", "s", b"second")
    assert (one.bodies(), two.bodies()) == ([], [b"second"])
    one.declare("e")
    one.consume("e", exclusive=True)
    one.hear()
    assert two.refused(methods.BasicConsume("e", "x")).reply_code == 403


def test_priorities_hold_over_brokers() -> None:
    cluster = Cluster("b", "c")
    low, high = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    low.declare("q")
    low.consume(no_ack=True)
    high.consume(no_ack=True, arguments={"x-priority": 5})
    low.hear(), high.hear()
    low.publish("", "q", b"one").publish("", "q", b"two")
    assert (low.bodies(), high.bodies()) == ([], [b"one", b"two"])


def test_errors_of_the_root_close_the_channel_with_the_same_texts() -> None:
    cluster = Cluster()
    assert cluster.root is not None
    here, root = cluster.front.peer(), cluster.root.peer()
    for question in (
        methods.BasicConsume("none"),
        methods.BasicGet("none"),
        methods.QueueBind("none", "amq.topic", "a"),
        methods.QueuePurge("none"),
        methods.ExchangeDeclare("amq.bad", "direct"),
        methods.ExchangeDeclare("", "direct"),
        methods.QueueDeclare("amq.bad"),
    ):
        assert here.refused(question) == root.refused(question)
