"""Queues of all kinds keep their nature when another broker takes over (R26, but for streams)."""

from __future__ import annotations

import pytest

from tests.support.client import ClosedByBrokerError
from tests.unit.node.cluster_world import Loss
from tests.unit.node.takeover import PERSISTENT, Cluster


def test_messages_that_were_acquired_come_back_in_order() -> None:
    cluster = Cluster()
    cluster.declare(delivery_limit=1)
    cluster.publish(*[b"%d" % number for number in range(6)])
    consumer = cluster.world.client(cluster.root).channel()
    consumer.rpc("basic.qos", prefetch_count=4)
    consumer.consume("q")
    assert consumer.bodies(4) == [b"0", b"1", b"2", b"3"]
    consumer.send("basic.ack", delivery_tag=2, multiple=False)
    consumer.send("basic.nack", delivery_tag=3, multiple=False, requeue=False)
    # The round trip of a purge waits for the commit of what came before it.
    cluster.declare("other")
    for _ in range(3):
        # A takeover never counts towards the limit of deliveries.
        cluster.take_over()
        got = [cluster.channel.get("q", no_ack=False) for _ in range(4)]
        assert [(one.body, one.redelivered) for one in got if one is not None] == [
            (body, True) for body in (b"0", b"3", b"4", b"5")
        ]
        cluster.come_back()


@pytest.mark.proves("C8", "R26")
def test_a_last_value_queue_keeps_the_last_of_each_key() -> None:
    cluster = Cluster()
    cluster.declare(last_value_key="k")
    for body, key in ((b"a1", "a"), (b"b1", "b"), (b"a2", "a"), (b"c1", "c")):
        cluster.publish(body, headers={"k": key})
    cluster.take_over()
    assert cluster.channel.counts("q")[0] == 3
    acquired = cluster.channel.get("q", no_ack=False)
    assert acquired.body == b"b1"
    cluster.publish(b"b2", headers={"k": "b"})
    # Only the root knows what is acquired: for the others it is out of date by now.
    cluster.start_again()
    cluster.world.run(1_000)
    cluster.take_over(Loss.ALL)
    assert cluster.drain() == [b"a2", b"c1", b"b2"]


@pytest.mark.proves("C8", "R26")
@pytest.mark.parametrize("priorities", [False, True])
def test_a_ring_goes_round(priorities: bool) -> None:
    cluster = Cluster()
    cluster.declare("dead")
    cluster.declare(
        max_length=3,
        dead_letter_exchange="",
        dead_letter_routing_key="dead",
        max_priority=5 if priorities else 0,
    )
    for number in range(5):
        cluster.publish(b"%d" % number, priority=number % 2)
    assert cluster.channel.counts("q")[0] == 3
    cluster.take_over()
    cluster.publish(b"5", priority=1)
    # The next to be delivered is the one that makes room, also if it has the highest priority.
    left, dead = ([b"0", b"2", b"4"], [b"1", b"3", b"5"]) if priorities else ([b"3", b"4", b"5"], [b"0", b"1", b"2"])
    assert (cluster.drain(), cluster.drain("dead")) == (left, dead)
    cluster.come_back()


@pytest.mark.proves("C8", "R26")
def test_priorities_order_the_messages_that_come_back() -> None:
    cluster = Cluster()
    cluster.declare(max_priority=9)
    for number, priority in enumerate((1, 9, 1, 5, 9)):
        cluster.publish(b"%d" % number, priority=priority, delivery_mode=1 + number % 2)
    assert cluster.channel.get("q", no_ack=False).body == b"1"
    cluster.take_over()
    cluster.publish(b"5", priority=5)
    assert cluster.drain() == [b"1", b"4", b"3", b"5", b"0", b"2"]
    cluster.come_back()


def test_a_full_queue_goes_on_to_refuse() -> None:
    cluster = Cluster()
    cluster.declare(max_length=2, overflow="reject-publish")
    cluster.publish(b"1", b"2")
    for _ in range(2):
        cluster.channel.publish(b"3", routing_key="q", delivery_mode=PERSISTENT)
        cluster.channel.expect("basic.nack")
        cluster.take_over()
        cluster.come_back()
    assert cluster.channel.get("q").body == b"1"
    cluster.publish(b"4")
    assert cluster.drain() == [b"2", b"4"]


@pytest.mark.proves("R34")
@pytest.mark.parametrize("pause_ms", [0, 2_000])
def test_time_goes_on_while_the_root_changes(pause_ms: int) -> None:
    cluster = Cluster()
    cluster.declare("dead")
    cluster.declare(message_ttl=1_500, dead_letter_exchange="", dead_letter_routing_key="dead")
    cluster.publish(b"old")
    cluster.world.run(500)
    cluster.publish(b"young")
    cluster.publish(b"short", expiration="700")
    born_ms = cluster.world.now_ms
    old = cluster.root
    cluster.world.kill(old)
    if pause_ms:
        # Two of three are away: time passes without a root.
        other = next(name for name, machine in cluster.world.machines.items() if machine.node is not None)
        cluster.world.kill(other)
        cluster.world.run(pause_ms)
        cluster.world.start(other)
    cluster.channel = cluster.join()
    if not pause_ms:
        assert cluster.world.now_ms - born_ms < 700
        assert cluster.channel.counts("q")[0] == 3
    cluster.world.run(1_700)
    assert cluster.channel.counts("q")[0] == 0
    assert sorted(cluster.drain("dead")) == [b"old", b"short", b"young"]
    cluster.come_back()


def test_a_rejected_message_is_in_its_queue_or_in_the_dead_letter_queue() -> None:
    """A rejected message is in one queue or the other, whenever the root dies."""
    for seed in range(4):
        cluster = Cluster(seed)
        cluster.declare("dead")
        cluster.declare(dead_letter_exchange="", dead_letter_routing_key="dead")
        cluster.publish(*[b"%d" % number for number in range(8)])
        for _ in range(8):
            got = cluster.channel.get("q", no_ack=False)
            cluster.channel.send("basic.reject", delivery_tag=got.delivery_tag, requeue=False)
        cluster.world.run(seed)
        cluster.take_over(Loss.SOME)
        assert sorted(cluster.drain() + cluster.drain("dead")) == [b"%d" % number for number in range(8)]


# The clients that a broker's end disconnects, and those that stay.


@pytest.mark.proves("R20")
def test_exclusive_queues_go_with_their_connection() -> None:
    cluster = Cluster()
    cluster.channel.rpc("queue.declare", queue="mine", exclusive=True)
    cluster.channel.bind("mine", "amq.fanout")
    assert all("mine" not in broker.state.vhosts["/"].queues for broker in cluster.brokers()[1:])
    cluster.take_over()
    cluster.channel.rpc("queue.declare", queue="mine", exclusive=True)
    assert cluster.channel.counts("mine") == (0, 0)


@pytest.mark.proves("R20")
def test_connections_channels_and_consumers_are_the_business_of_one_broker() -> None:
    cluster = Cluster()
    cluster.declare()
    cluster.world.client(cluster.root).channel().consume("q")
    cluster.world.run(500)
    views = cluster.world.node(cluster.root).views
    assert (len(list(views.connections())), len(list(views.channels())), len(list(views.consumers()))) == (2, 2, 1)
    for name in cluster.backups:
        views = cluster.world.node(name).views
        assert not [*views.connections(), *views.channels(), *views.consumers()]
    cluster.take_over()
    assert not list(cluster.world.node(cluster.root).views.consumers())


def test_queues_that_are_not_durable_are_known_to_all_and_empty_after_a_takeover() -> None:
    cluster = Cluster()
    cluster.channel.rpc("queue.declare", queue="passing")
    cluster.channel.bind("passing", "amq.fanout")
    cluster.publish(b"x", queue="passing")
    cluster.take_over()
    assert cluster.channel.counts("passing") == (0, 0)
    cluster.channel.publish_confirmed(b"y", exchange="amq.fanout")
    assert cluster.drain("passing") == [b"y"]


@pytest.mark.parametrize("expires_ms", [0, 3_000])
def test_an_auto_delete_queue_waits_for_its_consumers(expires_ms: int) -> None:
    """Its consumers were the old root's clients. They have time to come back, for ever or until it expires."""
    cluster = Cluster()
    table = {"x-expires": expires_ms} if expires_ms else {}
    cluster.channel.rpc("queue.declare", queue="q", durable=True, auto_delete=True, arguments=table)
    cluster.world.client(cluster.root).channel().consume("q")
    cluster.publish(b"1")
    cluster.take_over()
    cluster.world.run(2_000)
    assert cluster.channel.counts("q") == (1, 0)
    if expires_ms:
        cluster.world.run(expires_ms + 200)
    else:
        consumer = cluster.world.client(cluster.root)
        assert (channel := consumer.channel()).consume("q") and channel.delivery().body == b"1"
        consumer.close()
    with pytest.raises(ClosedByBrokerError, match="no queue 'q'"):
        cluster.channel.counts("q")


def test_an_alternate_exchange_may_be_declared_later() -> None:
    cluster = Cluster()
    cluster.channel.rpc(
        "exchange.declare", exchange="first", type="direct", durable=True, arguments={"alternate-exchange": "second"}
    )
    cluster.declare()
    cluster.channel.publish_confirmed(b"lost", exchange="first", routing_key="k", delivery_mode=PERSISTENT)
    cluster.take_over()
    cluster.channel.rpc("exchange.declare", exchange="second", type="fanout", durable=True)
    cluster.channel.bind("q", "second")
    cluster.channel.publish_confirmed(b"found", exchange="first", routing_key="k", delivery_mode=PERSISTENT)
    cluster.come_back()
    cluster.take_over()
    cluster.channel.publish_confirmed(b"too", exchange="first", routing_key="k", delivery_mode=PERSISTENT)
    assert cluster.drain() == [b"found", b"too"]


def test_removed_objects_stay_removed() -> None:
    cluster = Cluster()
    for name in ("q", "deleted", "again"):
        cluster.declare(name)
        cluster.channel.bind(name, "amq.fanout")
    away = cluster.backups[0]
    cluster.world.kill(away)
    cluster.publish(b"old", queue="again")
    cluster.channel.rpc("queue.unbind", queue="q", exchange="amq.fanout", routing_key="")
    cluster.channel.rpc("queue.delete", queue="deleted")
    cluster.channel.rpc("queue.delete", queue="again")
    cluster.declare("again", max_length=5)
    cluster.publish(b"new", queue="again")
    cluster.come_back()
    # The one that was away is the one that takes over.
    other = next(name for name in cluster.backups if name != away)
    cluster.world.kill(other)
    old = cluster.root
    cluster.world.kill(old)
    cluster.world.start(other)
    cluster.channel = cluster.join()
    cluster.channel.publish_confirmed(b"nowhere", exchange="amq.fanout", delivery_mode=PERSISTENT)
    assert cluster.drain() == []
    assert cluster.drain("again") == [b"new"]
    with pytest.raises(ClosedByBrokerError, match="no queue 'deleted'"):
        cluster.channel.counts("deleted")
