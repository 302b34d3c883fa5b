"""Consumers: tags, exclusiveness, notification, priorities, prefetch, one active at a time."""

import pytest

from pandomq import methods
from pandomq.fieldtable import Int32
from tests.unit.broker.conversation import Peer, World


def consuming(world: World, queue: str = "q", tag: str = "t", **wishes: object) -> Peer:
    peer = world.peer()
    peer.consume(queue, tag, **wishes)
    peer.hear()
    return peer


def test_the_broker_makes_a_tag_if_there_is_none() -> None:
    peer = World().peer()
    peer.declare("q")
    tags = {peer.call(methods.BasicConsume("q"), expect=methods.BasicConsumeOk).consumer_tag for _ in range(3)}
    assert len(tags) == 3
    assert all(tag.startswith("amq.ctag-") for tag in tags)


def test_a_tag_is_its_channels_own() -> None:
    peer = World().peer()
    peer.declare("q")
    peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=2)
    peer.call(methods.BasicConsume("q", "t"), expect=methods.BasicConsumeOk)
    peer.call(methods.BasicConsume("q", "t"), expect=methods.BasicConsumeOk, channel=2)
    peer.send(methods.BasicConsume("q", "t"))
    assert str(peer.fault()) == "530 NOT_ALLOWED - attempt to reuse consumer tag 't'"
    assert (peer.fault().class_id, peer.fault().method_id) == (60, 20)


def test_consume_without_a_queue() -> None:
    close = World().peer().refused(methods.BasicConsume("q"))
    assert (close.reply_code, close.reply_text) == (404, "NOT_FOUND - no queue 'q' in vhost '/'")


def test_no_wait_starts_without_an_answer() -> None:
    peer = World().peer()
    peer.declare("q")
    peer.publish("", "q", b"1")
    peer.send(methods.BasicConsume("q", "t", no_ack=True, no_wait=True))
    (delivery,) = peer.hear()
    assert delivery.method == methods.BasicDeliver("t", 1, False, "", "q")
    assert peer.send(methods.BasicCancel("t", no_wait=True)).heard() == []


def test_cancel_is_answered_even_if_there_is_nothing_to_cancel() -> None:
    peer = World().peer()
    assert peer.call(methods.BasicCancel("t"), expect=methods.BasicCancelOk).consumer_tag == "t"
    assert peer.send(methods.BasicCancelOk("t")).heard() == []


def test_nothing_comes_after_cancel_ok_and_unacked_messages_stay() -> None:
    peer = World().peer()
    peer.declare("q")
    peer.publish("", "q", b"1")
    peer.consume("q")
    assert peer.bodies() == [b"1"]
    peer.say_publish("", "q", b"2").say(methods.BasicCancel("t")).say_publish("", "q", b"3").flush()
    assert peer.heard() == [methods.BasicDeliver("t", 2, False, "", "q"), methods.BasicCancelOk("t")]
    assert peer.counts("q") == (1, 0)
    peer.send(methods.BasicNack(1, False, True))
    assert peer.counts("q") == (2, 0)


def test_an_exclusive_consumer_is_alone() -> None:
    world = World()
    peer, other = world.peer(), world.peer()
    peer.declare("q")
    peer.call(methods.BasicConsume("q", "t", exclusive=True), expect=methods.BasicConsumeOk)
    for exclusive in (False, True):
        close = other.refused(methods.BasicConsume("q", exclusive=exclusive))
        assert (close.reply_code, close.reply_text) == (403, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use")
    peer.call(methods.BasicCancel("t"), expect=methods.BasicCancelOk)
    other.call(methods.BasicConsume("q", "t"), expect=methods.BasicConsumeOk)
    assert peer.refused(methods.BasicConsume("q", exclusive=True)).reply_code == 403
    other.leave()
    peer.call(methods.BasicConsume("q", exclusive=True), expect=methods.BasicConsumeOk)


def test_clients_that_asked_for_it_receive_a_cancel_when_the_queue_is_deleted() -> None:
    world = World()
    peer, told, untold = world.peer(), world.peer(), world.connect(notify=False)
    untold.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk)
    peer.declare("q")
    for consumer in (peer, told, untold):
        consumer.call(methods.BasicConsume("q", "t"), expect=methods.BasicConsumeOk)
    peer.send(methods.QueueDelete("q"))
    assert peer.heard() == [methods.QueueDeleteOk(0), methods.BasicCancel("t", True)]
    assert told.heard() == [methods.BasicCancel("t", True)]
    assert untold.heard() == []
    # The tag is free again.
    peer.declare("q")
    told.call(methods.BasicConsume("q", "t"), expect=methods.BasicConsumeOk)


def test_higher_priorities_come_first() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    low = consuming(world, no_ack=True, arguments={"x-priority": Int32(-1)})
    high = consuming(world, no_ack=True, arguments={"x-priority": Int32(10)})
    for number in range(4):
        peer.publish("", "q", bytes([number]))
    assert len(high.bodies()) == 4
    assert low.bodies() == []


@pytest.mark.parametrize(
    ("name", "value", "wrong"),
    [
        ("x-priority", "a", "invalid arg 'x-priority' for queue 'q' in vhost '/': \"expected integer, got longstr\""),
        (
            "x-stream-offset",
            "first",
            "invalid arg 'x-stream-offset' for queue 'q' in vhost '/' of queue type rabbit_classic_queue",
        ),
    ],
)
def test_arguments_of_a_consumer(name: str, value: object, wrong: str) -> None:
    peer = World().peer()
    peer.declare("q")
    close = peer.refused(methods.BasicConsume("q", arguments={name: value}))
    assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - {wrong}")


def test_prefetch_is_for_each_consumer_or_for_the_channel() -> None:
    peer = World().peer()
    peer.declare("q")
    for number in range(10):
        peer.publish("", "q", bytes([number]))
    peer.call(methods.BasicQos(0, 2, False), expect=methods.BasicQosOk)
    peer.call(methods.BasicQos(0, 3, True), expect=methods.BasicQosOk)
    peer.consume("q", "a")
    peer.consume("q", "b")
    assert len(peer.bodies()) == 3
    # Another limit for each consumer lifts the one for all.
    peer.send(methods.BasicQos(0, 5, False))
    assert len(peer.bodies()) == 1
    peer.send(methods.BasicAck(0, True))
    assert len(peer.bodies()) == 4


def test_prefetch_by_size_is_not_implemented() -> None:
    peer = World().peer()
    peer.send(methods.BasicQos(5, 0, False))
    assert str(peer.fault()) == "540 NOT_IMPLEMENTED - prefetch_size!=0 (5)"


def test_a_single_active_consumer_and_its_successor() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q", arguments={"x-single-active-consumer": True})
    first, second = consuming(world, no_ack=True), consuming(world, no_ack=True)
    close = peer.refused(methods.BasicConsume("q", exclusive=True))
    assert close.reply_text == "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"
    peer.publish("", "q", b"1").publish("", "q", b"2")
    assert first.bodies() == [b"1", b"2"]
    first.leave()
    peer.publish("", "q", b"3")
    assert second.bodies() == [b"3"]


def test_get_is_not_for_quorum_queues_with_a_single_active_consumer() -> None:
    peer = World().peer()
    peer.declare("q", durable=True, arguments={"x-queue-type": "quorum", "x-single-active-consumer": True})
    close = peer.refused(methods.BasicGet("q"))
    assert (close.reply_code, close.reply_text) == (
        405,
        "RESOURCE_LOCKED - cannot obtain access to locked queue 'q' in vhost '/'. basic.get operations are not "
        "supported by quorum queues with single active consumer",
    )


def test_no_local_is_accepted_and_means_nothing() -> None:
    peer = World().peer()
    peer.declare("q")
    peer.consume("q", no_local=True, no_ack=True)
    peer.hear()
    peer.publish("", "q", b"1")
    assert peer.bodies() == [b"1"]
