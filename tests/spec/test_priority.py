"""x-max-priority: higher ones first, equal ones in order."""

from __future__ import annotations

import time

import pytest

from tests.support.client import Channel


def publish_all(channel: Channel, queue: str, priorities: list[int | None], how: str = "whole") -> None:
    with channel.connection.in_segments(how):
        for place, priority in enumerate(priorities):
            channel.publish(f"{place}", queue, priority=priority)


@pytest.mark.parametrize("how", ["asis", "whole", "bytewise"])
def test_higher_ones_come_first_and_equal_ones_in_order(channel: Channel, how: str) -> None:
    queue = channel.declare_queue(arguments={"x-max-priority": 10})
    priorities: list[int | None] = [0, 5, 10, None, 5, 3, 10, 0]
    publish_all(channel, queue, priorities, how)
    expected = sorted(range(len(priorities)), key=lambda place: -(priorities[place] or 0))
    assert [int(body) for body in channel.drain(queue)] == expected


def test_priorities_above_the_highest_count_as_the_highest(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-priority": 5})
    publish_all(channel, queue, [1, 200, 5, 255, 4])
    assert channel.drain(queue) == [b"1", b"2", b"3", b"4", b"0"]


def test_the_property_is_not_changed(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-priority": 5})
    channel.publish("m", queue, priority=200)
    found = channel.get(queue)
    assert found is not None
    assert found.properties["priority"] == 200


def test_without_the_argument_priorities_mean_nothing(channel: Channel) -> None:
    queue = channel.declare_queue()
    publish_all(channel, queue, [0, 9, 5])
    assert channel.drain(queue) == [b"0", b"1", b"2"]


def test_a_requeued_message_goes_back_to_its_place(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-priority": 5})
    publish_all(channel, queue, [1, 5, 1, 5, 3])
    found = [channel.get(queue, no_ack=False) for _ in range(3)]
    assert [method.body for method in found if method] == [b"1", b"3", b"4"]
    channel.send("basic.nack", delivery_tag=3, multiple=True, requeue=True)
    assert channel.drain(queue) == [b"1", b"3", b"4", b"0", b"2"]


def test_a_consumer_gets_the_waiting_message_of_the_highest_priority(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-priority": 5})
    reader = channel.connection.channel()
    reader.rpc("basic.qos", prefetch_count=1)
    reader.consume(queue)
    publish_all(channel, queue, [0])
    assert reader.delivery().body == b"0"
    publish_all(channel, queue, [1, 4, 2])
    channel.expect_nothing()
    order = []
    for tag in (1, 2, 3):
        reader.send("basic.ack", delivery_tag=tag)
        order.append(reader.delivery().body)
    assert order == [b"1", b"2", b"0"]


def test_overflow_takes_the_head_which_has_the_highest_priority(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-priority": 5, "x-max-length": 3})
    publish_all(channel, queue, [1, 5, 1, 5, 3])
    assert channel.drain(queue) == [b"4", b"0", b"2"]


def test_expired_messages_leave_from_every_priority(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-priority": 5, "x-message-ttl": 100})
    publish_all(channel, queue, [0, 5, 3, 1])
    deadline = time.monotonic() + 10
    while channel.counts(queue)[0]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_all_256_priorities(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-priority": 255})
    publish_all(channel, queue, list(range(256)))
    assert [int(body) for body in channel.drain(queue)] == list(range(255, -1, -1))


def test_purge_counts_all_priorities(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-priority": 3})
    publish_all(channel, queue, [0, 1, 2, 3, 3])
    assert channel.rpc("queue.purge", queue=queue).message_count == 5
