"""The root dies, and another one takes over: clients of fronts go on, and see redeliveries at most."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.broker.log.commands import DeleteUser
from pandomq.cluster.proxy.limits import REPEAT_MS_MAX
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer
from tests.unit.cluster.proxy.pipe_world import Cluster
from tests.unit.cluster.proxy.test_chance import drained
from tests.unit.cluster.proxy.test_consumers import deliveries, filled
from tests.unit.cluster.proxy.test_private_queues import bind, outlet_bindings

PERSISTENT = Properties(delivery_mode=2)


@pytest.mark.proves("R28")
def test_consumers_go_on_and_receive_unacked_messages_again() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare("q", durable=True)
    peer.call(methods.BasicQos(0, 2, False), expect=methods.BasicQosOk)
    peer.consume()
    for number in range(4):
        peer.publish("", "q", b"%d" % number, PERSISTENT)
    assert deliveries(peer) == [(1, b"0", False), (2, b"1", False)]
    peer.send(methods.BasicAck(1, False))
    assert deliveries(peer) == [(3, b"2", False)]
    cluster.change_root()
    # The client has as many unacked messages as it wants.
    assert deliveries(peer) == []
    peer.send(methods.BasicReject(2, True))
    assert deliveries(peer) == [(4, b"1", True)]
    # Deliveries of the old root can still be acked. The new root cannot know that the last was not delivered.
    peer.send(methods.BasicAck(3, False))
    assert deliveries(peer) == [(5, b"3", True)]
    peer.send(methods.BasicAck(5, True))
    assert cluster.front.peer().counts() == (0, 1)


def held_after_a_change(limit: methods.BasicQos, *tags: str) -> tuple[Cluster, Peer]:
    """A channel whose client has received one message for each of these consumers of q, before the root changed."""
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare("q", durable=True)
    peer.call(limit, expect=methods.BasicQosOk)
    for number, tag in enumerate(tags):
        peer.consume(tag=tag)
        peer.publish("", "q", b"%d" % number, PERSISTENT)
    peer.hear()
    cluster.change_root()
    return cluster, peer


@pytest.mark.proves("R28")
def test_a_prefetch_for_all_consumers_counts_deliveries_of_an_earlier_root() -> None:
    _, peer = held_after_a_change(methods.BasicQos(0, 2, True), "a", "b")
    assert deliveries(peer) == []
    # Also of a consumer that is gone, whoever has its tag now.
    peer.call(methods.BasicCancel("a"), expect=methods.BasicCancelOk)
    peer.consume(tag="a")
    assert deliveries(peer) == []
    peer.publish("", "q", b"2", PERSISTENT)
    assert deliveries(peer) == []
    peer.send(methods.BasicAck(1, False))
    assert len(deliveries(peer)) == 1
    peer.send(methods.BasicAck(2, False))
    assert len(deliveries(peer)) == 1
    peer.send(methods.BasicAck(0, True))
    assert peer.counts() == (0, 2)


@pytest.mark.parametrize("how", ["ack", "requeue", "recover"])
def test_a_consumer_gets_more_when_it_has_settled_deliveries_of_an_earlier_root(how: str) -> None:
    _, peer = held_after_a_change(methods.BasicQos(0, 1, False), "a")
    peer.publish("", "q", b"next", PERSISTENT)
    assert deliveries(peer) == []
    if how == "recover":
        peer.send(methods.BasicRecover(True))
    else:
        peer.send(methods.BasicAck(1, False) if how == "ack" else methods.BasicNack(1, False, True))
    ((tag, body, _),) = deliveries(peer)
    assert (tag, body) == (2, b"next" if how == "ack" else b"0")
    peer.send(methods.BasicAck(2, False))
    assert [tag for tag, _, _ in deliveries(peer)] == ([] if how == "ack" else [3])


def test_consumers_with_different_limits_and_none_at_all() -> None:
    cluster, peer = held_after_a_change(methods.BasicQos(0, 0, False), "free")
    assert deliveries(peer) == [(2, b"0", True)], "without a limit nothing is held back"
    peer.send(methods.BasicAck(1, False), methods.BasicAck(2, False))
    peer.call(methods.BasicCancel("free"), expect=methods.BasicCancelOk)
    for limit in (1, 2):
        peer.send(methods.BasicQos(0, limit, False))
        peer.consume(tag=f"{limit}")
    for _ in range(3):
        peer.publish("", "q", b"x", PERSISTENT)
    assert len(deliveries(peer)) == 3
    cluster.change_root()
    cluster.change_root()
    assert deliveries(peer) == []
    peer.send(methods.BasicAck(0, True))
    assert cluster.front.peer().counts() == (0, 2)


def test_a_root_of_an_earlier_version_receives_no_deliveries_of_the_last_one() -> None:
    cluster, peer = held_after_a_change(methods.BasicQos(0, 1, False), "a")
    assert deliveries(peer) == []
    cluster.link_version = 1
    cluster.change_root()
    assert len(deliveries(peer)) == 1


def test_calls_are_asked_again() -> None:
    cluster = Cluster(late=True)
    peers = [cluster.front.peer() for _ in range(5)]
    peers[0].send(methods.QueueDeclare("q", durable=True))
    peers[1].send(methods.ExchangeDeclare("e", "fanout"))
    peers[2].send(methods.QueueDeclare(""))
    assert [peer.heard() for peer in peers] == [[], [], [], [], []]
    cluster.change_root()
    assert peers[0].heard() == [methods.QueueDeclareOk("q", 0, 0)]
    assert peers[1].heard() == [methods.ExchangeDeclareOk()]
    (named,) = peers[2].heard()
    assert isinstance(named, methods.QueueDeclareOk)
    assert cluster.root is not None
    names = cluster.root.broker.state.vhosts["/"].queues
    assert [name for name in names if name.startswith("amq.gen")] == [named.queue]


def test_messages_taken_and_not_acked_come_back() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare("q", durable=True)
    peer.publish("", "q", b"one", PERSISTENT)
    assert peer.get(no_ack=False) is not None
    cluster.change_root()
    got = peer.get(no_ack=False)
    assert got is not None
    assert isinstance(got.method, methods.BasicGetOk)
    assert got.method.redelivered
    # Whichever of the two is acked.
    peer.send(methods.BasicAck(1, False))
    assert peer.get() is None
    peer.send(methods.BasicAck(2, False))
    peer.call(methods.ChannelClose(200, "", 0, 0), expect=methods.ChannelCloseOk)
    assert cluster.front.peer().counts() == (0, 0)


def test_a_message_acked_before_the_change_of_root_does_not_come_back() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare("q", durable=True)
    peer.publish("", "q", b"one", PERSISTENT)
    assert peer.get(no_ack=False) is not None
    cluster.change_root()
    peer.send(methods.BasicAck(1, False))
    assert peer.get() is None
    assert peer.refused(methods.QueueDeclare("none", passive=True)).reply_code == 404


@pytest.mark.proves("R27")
def test_private_queues_and_their_messages_stay() -> None:
    cluster = Cluster("b", "c")
    here, there = cluster.fronts[0].peer(), cluster.fronts[1].peer()
    here.declare("mine", exclusive=True)
    bind(here, "mine", "amq.topic", "a.#")
    there.publish("amq.topic", "a.b", b"before")
    cluster.lose_root()
    assert here.counts("mine") == (1, 0)
    cluster.find_root()
    cluster.fronts[1].pass_time(2_000)
    assert outlet_bindings(cluster, "amq.topic") == ["a.#"]
    there.publish("amq.topic", "a.b", b"after")
    assert here.counts("mine") == (2, 0)
    assert there.refused(methods.QueueDeclare("mine", exclusive=True)).reply_code == 405


def test_a_private_queue_whose_name_was_lost_to_another_client_is_closed() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare("mine", exclusive=True)
    peer.consume("mine")
    peer.hear()
    cluster.lose_root()
    old = cluster.front.dial
    cluster.front.dial = lambda _root: False  # type: ignore[method-assign,assignment]
    root = cluster.find_root()
    root.peer().declare("mine")
    cluster.front.dial = old  # type: ignore[method-assign]
    cluster.settle()
    assert methods.BasicCancel("t", True) in peer.heard()
    assert peer.counts("mine") == (0, 0)


@pytest.mark.proves("R15")
def test_without_a_root_a_call_waits_and_then_fails() -> None:
    cluster = Cluster()
    asking, silent, private = (cluster.front.peer() for _ in range(3))
    private.declare("mine", exclusive=True)
    silent.declare("q")
    silent.consume()
    silent.hear()
    cluster.lose_root()
    asking.send(methods.QueueDeclare("other"))
    private.publish("", "mine", b"x")
    cluster.front.pass_time(14_000)
    assert not cluster.front.closed
    cluster.front.pass_time(2_000)
    assert asking.fault().reply_code == 320
    assert "no root was elected for 15000 ms" in asking.fault().reply_text
    assert private.fault().reply_code == 320
    assert silent.client not in cluster.front.closed
    cluster.find_root()
    assert silent.counts("q") == (0, 1)


def test_a_wait_that_is_short_enough_goes_unnoticed() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare("q", durable=True)
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    cluster.lose_root()
    peer.publish("", "q", b"one", PERSISTENT).publish("", "q", b"two", PERSISTENT)
    cluster.front.pass_time(10_000)
    assert peer.heard() == []
    cluster.find_root()
    assert sum(1 for method in peer.heard() if isinstance(method, methods.BasicAck)) in (1, 2)
    assert peer.counts() == (2, 0)


def test_the_queue_has_gone_while_there_was_no_tunnel() -> None:
    cluster = Cluster("b", "c")
    peer = filled(cluster, 0)
    peer.consume()
    peer.hear()
    old = cluster.front.dial
    cluster.front.dial = lambda _root: False  # type: ignore[method-assign,assignment]
    cluster.front.lose_tunnels()
    cluster.fronts[1].peer().call(methods.QueueDelete("q"), expect=methods.QueueDeleteOk)
    cluster.front.dial = old  # type: ignore[method-assign]
    cluster.front.pass_time(2_000)
    assert peer.heard() == [methods.BasicCancel("t", True)]


def test_a_channel_that_was_being_closed_is_closed() -> None:
    cluster = Cluster()
    peer = filled(cluster, 1)
    carry = cluster.front.carry
    cluster.front.carry = lambda: False  # type: ignore[method-assign]
    peer.send(methods.ChannelClose(200, "", 0, 0))
    assert peer.heard() == []
    cluster.front.lose_tunnels()
    cluster.front.carry = carry  # type: ignore[method-assign]
    cluster.front.pass_time(100)
    assert peer.heard() == [methods.ChannelCloseOk()]


def test_a_user_who_is_gone_is_not_let_in_again() -> None:
    cluster = Cluster()
    assert cluster.root is not None
    cluster.root.admit("passing")
    cluster.settle()
    peer = cluster.front.peer("passing")
    peer.declare("q")
    cluster.root.administer(DeleteUser("passing"))
    cluster.settle()
    assert peer.fault().reply_code == 320


def test_a_trunk_that_is_lost_before_it_is_answered_has_settled_nothing() -> None:
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare("mine", exclusive=True)
    bind(peer, "mine", "amq.fanout")
    (trunk,) = cluster.front.broker.trunks.values()
    assert trunk.settled
    cluster.lose_root()
    assert not trunk.settled
    carry = cluster.front.carry
    cluster.front.carry = lambda: False
    cluster.find_root()
    assert trunk.attached
    assert not trunk.settled
    cluster.front.lose_tunnels()
    cluster.root = None
    cluster.pass_time(10)
    assert not trunk.settled
    cluster.front.carry = carry
    cluster.find_root()
    assert trunk.settled


@pytest.mark.proves("R29")
def test_a_message_sent_again_is_marked_as_possibly_delivered_before() -> None:
    cluster = Cluster()
    publisher, consumer = cluster.front.peer(), cluster.front.peer()
    consumer.declare("q", durable=True)
    consumer.consume()
    publisher.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    assert cluster.root is not None
    cluster.root.late = True
    publisher.publish("", "q", b"m", PERSISTENT)
    assert deliveries(consumer) == [(1, b"m", False)]
    assert publisher.heard() == []
    cluster.change_root()
    assert deliveries(consumer) == [(2, b"m", True)]
    assert publisher.heard() == [methods.BasicAck(1)]
    publisher.publish("", "q", b"n", PERSISTENT)
    assert deliveries(consumer) == [(3, b"n", False)]


@pytest.mark.proves("R30")
def test_a_busy_publisher_is_remembered_when_there_are_too_many_publishers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pandomq.cluster.proxy.private.trunk.PRODUCERS_SEEN_MAX", 4)
    cluster = Cluster("b", "c")
    here, there = cluster.fronts
    subscriber, busy = here.peer(), there.peer()
    subscriber.declare("mine", exclusive=True)
    bind(subscriber, "mine", "amq.fanout")
    busy.declare("q", durable=True)
    bind(busy, "q", "amq.fanout")
    busy.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    for _ in range(5):
        busy.publish("amq.fanout", "", b"busy", PERSISTENT)
        other = there.peer()
        other.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
        other.publish("amq.fanout", "", b"other", PERSISTENT)
    assert len(here.broker.seen) <= 4
    assert drained(subscriber, "mine") == [b"busy", b"other"] * 5
    assert cluster.root is not None
    cluster.root.late = True
    busy.heard()
    busy.publish("amq.fanout", "", b"once", PERSISTENT)
    for _ in range(2):
        other = there.peer()
        other.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
        other.publish("amq.fanout", "", b"late", PERSISTENT)
    assert busy.heard() == []
    cluster.change_root()
    assert busy.heard() == [methods.BasicAck(6)]
    assert drained(subscriber, "mine").count(b"once") == 1


@pytest.mark.proves("R29")
@pytest.mark.parametrize("confirmed", [False, True])
def test_publishes_that_a_root_may_have_forgotten_are_not_sent_again(confirmed: bool) -> None:
    """The client waits for nothing but confirms. If it has them, it may stay for ever."""
    cluster = Cluster()
    peer = cluster.front.peer()
    peer.declare("q", durable=True)
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    assert cluster.root is not None
    cluster.root.late = not confirmed
    peer.publish("", "q", b"m", PERSISTENT)
    assert bool(peer.heard()) is confirmed
    cluster.lose_root()
    cluster.front.pass_time(REPEAT_MS_MAX - 1)
    assert peer.client not in cluster.front.closed
    cluster.front.pass_time(1)
    assert (peer.client in cluster.front.closed) is not confirmed
