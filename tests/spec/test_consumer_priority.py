"""x-priority of consumers: the higher one receives messages as long as it has credit."""

from __future__ import annotations

from tests.support.client import Channel


def consuming(channel: Channel, queue: str, priority: int | None, prefetch: int = 0) -> Channel:
    reader = channel.connection.channel()
    if prefetch:
        reader.rpc("basic.qos", prefetch_count=prefetch)
    arguments = {} if priority is None else {"x-priority": priority}
    reader.consume(queue, arguments=arguments)
    return reader


def publish(channel: Channel, queue: str, count: int) -> None:
    for number in range(count):
        channel.publish(str(number), queue)
    channel.counts(queue)


def test_the_highest_gets_all(channel: Channel) -> None:
    queue = channel.declare_queue()
    low, high, usual = (consuming(channel, queue, priority) for priority in (-5, 10, None))
    publish(channel, queue, 10)
    assert len(high.bodies(10)) == 10
    low.expect_nothing()
    usual.expect_nothing()


def test_the_next_priority_gets_messages_when_the_highest_has_no_room(channel: Channel) -> None:
    queue = channel.declare_queue()
    low, usual, high = (consuming(channel, queue, priority, prefetch=2) for priority in (-1, None, 1))
    publish(channel, queue, 5)
    assert high.bodies(2) == [b"0", b"1"]
    assert usual.bodies(2) == [b"2", b"3"]
    assert low.bodies(1) == [b"4"]
    high.send("basic.ack", delivery_tag=1)
    high.expect_nothing()
    channel.publish("5", queue)
    assert high.delivery().body == b"5"


def test_equals_take_turns(channel: Channel) -> None:
    queue = channel.declare_queue()
    readers = [consuming(channel, queue, 3) for _ in range(2)]
    consuming(channel, queue, 2)
    publish(channel, queue, 10)
    assert [len(reader.bodies(5)) for reader in readers] == [5, 5]


def test_a_priority_that_is_no_number(channel: Channel, name: str) -> None:
    queue = channel.declare_queue(name)
    text = f"PRECONDITION_FAILED - invalid arg 'x-priority' for queue '{name}' in vhost '/': "
    text += '"expected integer, got longstr"'
    channel.refused(406, text, "basic.consume", queue=queue, arguments={"x-priority": "high"})
