"""basic.qos: prefetch per consumer and per channel."""

from __future__ import annotations

import pytest

from tests.support.client import Channel


def fill(channel: Channel, queue: str, count: int) -> None:
    with channel.connection.in_segments("whole"):
        for number in range(count):
            channel.publish(str(number), queue)


def settled(reader: Channel, writer: Channel, queue: str) -> int:
    """Returns how many messages the queue keeps ready once nothing more moves; no delivery is left to be received."""
    ready = writer.counts(queue)[0]
    reader.expect_nothing()
    return ready


@pytest.fixture
def writer(channel: Channel) -> Channel:
    return channel


@pytest.fixture
def reader(channel: Channel) -> Channel:
    return channel.connection.channel()


@pytest.mark.parametrize("prefetch", [1, 3, 10])
def test_no_more_than_the_prefetch_is_out(writer: Channel, reader: Channel, prefetch: int) -> None:
    queue = writer.declare_queue()
    fill(writer, queue, 20)
    reader.rpc("basic.qos", prefetch_count=prefetch)
    reader.consume(queue)
    assert len(reader.bodies(prefetch)) == prefetch
    assert settled(reader, writer, queue) == 20 - prefetch
    reader.send("basic.ack", delivery_tag=1)
    assert reader.delivery().delivery_tag == prefetch + 1
    assert settled(reader, writer, queue) == 19 - prefetch


def test_zero_means_no_limit(writer: Channel, reader: Channel) -> None:
    queue = writer.declare_queue()
    fill(writer, queue, 200)
    reader.rpc("basic.qos", prefetch_count=0)
    reader.consume(queue)
    assert len(reader.bodies(200)) == 200


def test_the_limit_is_one_for_each_consumer(writer: Channel, reader: Channel) -> None:
    one, two = writer.declare_queue(), writer.declare_queue()
    reader.rpc("basic.qos", prefetch_count=2)
    for queue in (one, two):
        reader.consume(queue, queue)
    for queue in (one, two):
        fill(writer, queue, 5)
    tags = [reader.delivery().consumer_tag for _ in range(4)]
    assert sorted(tags) == sorted([one, one, two, two])
    assert settled(reader, writer, one) == 3
    assert settled(reader, writer, two) == 3


def test_a_prefetch_holds_for_later_consumers(writer: Channel, reader: Channel) -> None:
    one, two = writer.declare_queue(), writer.declare_queue()
    reader.consume(one, "unlimited")
    reader.rpc("basic.qos", prefetch_count=1)
    reader.consume(two, "limited")
    fill(writer, one, 10)
    fill(writer, two, 10)
    tags = [reader.delivery().consumer_tag for _ in range(11)]
    assert (tags.count("unlimited"), tags.count("limited")) == (10, 1)
    assert settled(reader, writer, two) == 9


def test_no_ack_knows_no_limit(writer: Channel, reader: Channel) -> None:
    queue = writer.declare_queue()
    fill(writer, queue, 50)
    reader.rpc("basic.qos", prefetch_count=1)
    reader.consume(queue, no_ack=True)
    assert len(reader.bodies(50)) == 50


@pytest.mark.parametrize("answer", ["basic.ack", "basic.nack", "basic.reject"])
def test_every_answer_makes_room(writer: Channel, reader: Channel, answer: str) -> None:
    queue = writer.declare_queue()
    fill(writer, queue, 5)
    reader.rpc("basic.qos", prefetch_count=1)
    reader.consume(queue)
    for number in range(5):
        found = reader.delivery()
        assert found.body == str(number).encode()
        reader.send(answer, delivery_tag=found.delivery_tag)
    assert settled(reader, writer, queue) == 0


def test_a_requeue_comes_back_to_the_same_consumer(writer: Channel, reader: Channel) -> None:
    queue = writer.declare_queue()
    fill(writer, queue, 2)
    reader.rpc("basic.qos", prefetch_count=1)
    reader.consume(queue)
    for tag in (1, 2, 3):
        found = reader.delivery()
        assert (found.body, found.delivery_tag, found.redelivered) == (b"0", tag, tag > 1)
        reader.send("basic.nack", delivery_tag=tag, requeue=True)


def test_ack_multiple_makes_room_for_as_many(writer: Channel, reader: Channel) -> None:
    queue = writer.declare_queue()
    fill(writer, queue, 10)
    reader.rpc("basic.qos", prefetch_count=4)
    reader.consume(queue)
    reader.bodies(4)
    reader.send("basic.ack", delivery_tag=3, multiple=True)
    assert reader.bodies(3) == [b"4", b"5", b"6"]
    assert settled(reader, writer, queue) == 3


def test_messages_taken_by_get_do_not_count(writer: Channel, reader: Channel) -> None:
    queue = writer.declare_queue()
    fill(writer, queue, 5)
    reader.rpc("basic.qos", prefetch_count=1)
    assert reader.get(queue, no_ack=False) is not None
    reader.consume(queue)
    assert reader.delivery().body == b"1"
    assert settled(reader, writer, queue) == 3


class TestGlobal:
    """With the global flag there is one limit for the whole channel."""

    def test_all_consumers_share_it(self, writer: Channel, reader: Channel) -> None:
        one, two = writer.declare_queue(), writer.declare_queue()
        reader.rpc("basic.qos", prefetch_count=3, global_=True)
        reader.consume(one)
        reader.consume(two)
        fill(writer, one, 5)
        fill(writer, two, 5)
        reader.bodies(3)
        assert settled(reader, writer, one) + settled(reader, writer, two) == 7
        reader.send("basic.ack", delivery_tag=3, multiple=True)
        reader.bodies(3)
        assert settled(reader, writer, one) + settled(reader, writer, two) == 4

    def test_a_global_prefetch_holds_for_existing_consumers(self, writer: Channel, reader: Channel) -> None:
        queue = writer.declare_queue()
        reader.consume(queue)
        reader.rpc("basic.qos", prefetch_count=1, global_=True)
        fill(writer, queue, 3)
        reader.delivery()
        assert settled(reader, writer, queue) == 2

    def test_the_smaller_of_both_limits_holds(self, writer: Channel, reader: Channel) -> None:
        one, two = writer.declare_queue(), writer.declare_queue()
        fill(writer, one, 5)
        fill(writer, two, 5)
        reader.rpc("basic.qos", prefetch_count=2)
        reader.rpc("basic.qos", prefetch_count=3, global_=True)
        reader.consume(one)
        reader.bodies(2)
        reader.consume(two)
        reader.bodies(1)
        assert settled(reader, writer, one) == 3
        assert settled(reader, writer, two) == 4

    def test_raising_it_lets_more_out(self, writer: Channel, reader: Channel) -> None:
        queue = writer.declare_queue()
        fill(writer, queue, 5)
        reader.rpc("basic.qos", prefetch_count=1, global_=True)
        reader.consume(queue)
        reader.delivery()
        reader.send("basic.qos", prefetch_count=3, global_=True)
        received = [reader.receive() for _ in range(3)]
        assert sorted(method.name for method in received) == ["basic.deliver", "basic.deliver", "basic.qos-ok"]
        reader.send("basic.qos", prefetch_count=0, global_=True)
        received = [reader.receive() for _ in range(3)]
        assert sorted(method.name for method in received) == ["basic.deliver", "basic.deliver", "basic.qos-ok"]


def test_a_limit_in_octets_is_not_implemented(channel: Channel) -> None:
    channel.refused_hard(540, "NOT_IMPLEMENTED - prefetch_size!=0 (10)", "basic.qos", prefetch_size=10)


def test_fair_dispatch(channel: Channel) -> None:
    """A consumer that does not ack receives no more, while the other one receives all the rest."""
    queue = channel.declare_queue()
    slow, fast = channel.connection.channel(), channel.connection.channel()
    for reader in (slow, fast):
        reader.rpc("basic.qos", prefetch_count=1)
        reader.consume(queue)
    fill(channel, queue, 20)
    slow.delivery()
    for _ in range(19):
        fast.send("basic.ack", delivery_tag=fast.delivery().delivery_tag)
    assert settled(slow, channel, queue) == 0
