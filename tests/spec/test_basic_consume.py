"""basic.consume and basic.cancel, and how messages are shared among consumers."""

from __future__ import annotations

import pytest

from tests.support.client import Channel, Connect


def fill(channel: Channel, queue: str, count: int) -> None:
    with channel.connection.in_segments("whole"):
        for number in range(count):
            channel.publish(str(number), queue)


def test_the_broker_makes_up_tags(channel: Channel) -> None:
    queue = channel.declare_queue()
    tags = {channel.consume(queue) for _ in range(5)}
    assert len(tags) == 5
    assert all(tag.startswith("amq.ctag-") for tag in tags)


def test_a_tag_of_ones_own(channel: Channel) -> None:
    queue = channel.declare_queue()
    assert channel.consume(queue, "mine") == "mine"
    channel.publish("m", queue)
    found = channel.delivery()
    assert (found.consumer_tag, found.delivery_tag, found.redelivered) == ("mine", 1, False)
    assert (found.exchange, found.routing_key, found.body) == ("", queue, b"m")


@pytest.mark.parametrize("count", [1, 500])
def test_messages_from_before_the_consume_come_first(channel: Channel, count: int) -> None:
    queue = channel.declare_queue()
    fill(channel, queue, count)
    channel.consume(queue, no_ack=True)
    channel.publish("last", queue)
    assert channel.bodies(count + 1) == [str(number).encode() for number in range(count)] + [b"last"]


def test_delivery_tags_count_from_one_for_each_channel(channel: Channel) -> None:
    one, two = channel.declare_queue(), channel.declare_queue()
    channel.consume(one, "a")
    channel.consume(two, "b", no_ack=True)
    for queue in (one, two, one):
        channel.publish("m", queue)
        channel.delivery()
    channel.publish("m", two)
    assert channel.delivery().delivery_tag == 4


@pytest.mark.parametrize("how", ["whole", "bytewise"])
def test_consume_publish_and_cancel_in_one_batch(channel: Channel, how: str) -> None:
    queue = channel.declare_queue()
    with channel.connection.in_segments(how):
        channel.send("basic.consume", queue=queue, consumer_tag="t", no_ack=True)
        channel.publish("m", queue)
    channel.expect("basic.consume-ok")
    assert channel.delivery().body == b"m"
    with channel.connection.in_segments(how):
        channel.send("basic.cancel", consumer_tag="t")
        channel.publish("n", queue)
    channel.expect("basic.cancel-ok")
    channel.expect_nothing()
    assert channel.drain(queue) == [b"n"]


def test_no_wait(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.send("basic.consume", queue=queue, consumer_tag="t", no_ack=True, no_wait=True)
    channel.publish("m", queue)
    assert channel.delivery().consumer_tag == "t"
    channel.send("basic.cancel", consumer_tag="t", no_wait=True)
    channel.publish("n", queue)
    channel.expect_nothing()
    assert channel.counts(queue) == (1, 0)


def test_no_wait_without_a_tag(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.send("basic.consume", queue=queue, no_wait=True)
    channel.publish("m", queue)
    assert channel.delivery().consumer_tag.startswith("amq.ctag-")


def test_a_queue_that_is_missing(channel: Channel, name: str) -> None:
    channel.refused(404, f"NOT_FOUND - no queue '{name}' in vhost '/'", "basic.consume", queue=name)


def test_a_tag_is_used_once_in_a_channel(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.consume(queue, "t")
    text = "NOT_ALLOWED - attempt to reuse consumer tag 't'"
    channel.refused_hard(530, text, "basic.consume", queue=queue, consumer_tag="t")


def test_a_tag_may_be_used_again_in_another_channel_and_after_a_cancel(channel: Channel) -> None:
    queue = channel.declare_queue()
    sibling = channel.connection.channel()
    channel.consume(queue, "t")
    sibling.consume(queue, "t")
    channel.rpc("basic.cancel", consumer_tag="t")
    channel.consume(queue, "t")
    assert channel.counts(queue) == (0, 2)


def test_a_cancel_of_an_unknown_consumer_is_answered(channel: Channel) -> None:
    assert channel.rpc("basic.cancel", consumer_tag="nobody").consumer_tag == "nobody"


def test_delivered_messages_can_be_acked_after_the_cancel(channel: Channel) -> None:
    queue = channel.declare_queue()
    tag = channel.consume(queue)
    fill(channel, queue, 2)
    channel.bodies(2)
    channel.rpc("basic.cancel", consumer_tag=tag)
    assert channel.counts(queue) == (0, 0)
    channel.send("basic.ack", delivery_tag=1)
    channel.send("basic.reject", delivery_tag=2, requeue=True)
    assert channel.drain(queue) == [b"1"]


@pytest.mark.parametrize(("first", "then"), [(False, True), (True, False), (True, True)])
def test_an_exclusive_consumer_is_alone(channel: Channel, name: str, first: bool, then: bool) -> None:
    queue = channel.declare_queue(name)
    sibling = channel.connection.channel()
    channel.consume(queue, exclusive=first)
    text = f"ACCESS_REFUSED - queue '{name}' in vhost '/' in exclusive use"
    sibling.refused(403, text, "basic.consume", queue=queue, exclusive=then)


def test_an_exclusive_consumer_makes_room_when_it_goes(channel: Channel) -> None:
    queue = channel.declare_queue()
    tag = channel.consume(queue, exclusive=True)
    channel.rpc("basic.cancel", consumer_tag=tag)
    channel.consume(queue, exclusive=True)


def test_basic_get_beside_an_exclusive_consumer(channel: Channel) -> None:
    queue = channel.declare_queue()
    sibling = channel.connection.channel()
    sibling.rpc("basic.qos", prefetch_count=1)
    sibling.consume(queue, exclusive=True)
    fill(channel, queue, 2)
    sibling.delivery()
    assert channel.drain(queue) == [b"1"]


def test_consumers_take_turns(connect: Connect, channel: Channel, name: str) -> None:
    queue = channel.declare_queue(name, exclusive=False)
    readers = [connect().channel() for _ in range(3)]
    for reader in readers:
        reader.consume(queue, no_ack=True)
    for number in range(30):
        channel.publish(str(number), queue)
    found = [[int(body) for body in reader.bodies(10)] for reader in readers]
    assert sorted(number for share in found for number in share) == list(range(30))
    for share in found:
        assert share == sorted(share)


def test_two_consumers_of_one_channel_take_turns(channel: Channel) -> None:
    queue = channel.declare_queue()
    for tag in ("a", "b"):
        channel.consume(queue, tag, no_ack=True)
    fill(channel, queue, 10)
    tags = [channel.delivery().consumer_tag for _ in range(10)]
    assert sorted(tags) == ["a"] * 5 + ["b"] * 5


def test_no_local_is_ignored(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.consume(queue, no_local=True, no_ack=True)
    channel.publish("own", queue)
    assert channel.delivery().body == b"own"


def test_with_no_ack_nothing_is_left_behind(channel: Channel, other: Channel, name: str) -> None:
    queue = channel.declare_queue(name, exclusive=False)
    other.consume(queue, no_ack=True)
    fill(channel, queue, 3)
    other.bodies(3)
    other.connection.close()
    assert channel.counts(queue) == (0, 0)


def test_arguments_that_mean_nothing_are_ignored(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.consume(queue, arguments={"x-made-up": {"a": [1]}, "x-cancel-on-ha-failover": True})


def test_a_slow_reader_gets_everything_in_order(channel: Channel, other: Channel, name: str) -> None:
    """More messages than fit into the socket's buffers wait for the reader, and are neither lost nor mixed."""
    queue = channel.declare_queue(name, exclusive=False)
    other.consume(queue, no_ack=True)
    for number in range(200):
        channel.publish(number.to_bytes(4, "big") * 25_000, queue)
    channel.expect_nothing()
    for number in range(200):
        assert other.delivery().body == number.to_bytes(4, "big") * 25_000
