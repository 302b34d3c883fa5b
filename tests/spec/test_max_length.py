"""x-max-length, x-max-length-bytes, x-overflow."""

from __future__ import annotations

import pytest

from tests.support.client import Channel


def publish_all(channel: Channel, queue: str, bodies: list[bytes], how: str = "whole") -> None:
    with channel.settling(how):
        for body in bodies:
            channel.publish(body, queue)


def numbers(first: int, last: int) -> list[bytes]:
    return [str(number).encode() for number in range(first, last + 1)]


@pytest.mark.parametrize("how", ["asis", "whole", "bytewise"])
def test_the_oldest_messages_are_dropped(channel: Channel, how: str) -> None:
    queue = channel.declare_queue(arguments={"x-max-length": 3})
    publish_all(channel, queue, numbers(1, 10), how)
    assert channel.counts(queue) == (3, 0)
    assert channel.drain(queue) == numbers(8, 10)


def test_bytes_are_those_of_the_bodies(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-length-bytes": 10})
    publish_all(channel, queue, [b"12345", b"12345"])
    assert channel.counts(queue) == (2, 0)
    publish_all(channel, queue, [b"6", b""])
    assert channel.drain(queue) == [b"12345", b"6", b""]


def test_a_message_larger_than_the_limit_drops_everything(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-length-bytes": 10})
    publish_all(channel, queue, [b"123", b"x" * 11])
    assert channel.drain(queue) == []


def test_both_limits_hold(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-length": 3, "x-max-length-bytes": 5})
    publish_all(channel, queue, [b"1", b"2", b"3", b"4"])
    assert channel.counts(queue) == (3, 0)
    publish_all(channel, queue, [b"1234"])
    assert channel.drain(queue) == [b"4", b"1234"]


def test_only_ready_messages_count(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-length": 2})
    publish_all(channel, queue, numbers(1, 2))
    for _ in range(2):
        assert channel.get(queue, no_ack=False) is not None
    publish_all(channel, queue, numbers(3, 4))
    assert channel.drain(queue) == numbers(3, 4)


def test_a_requeue_may_overflow_too(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-length": 2})
    publish_all(channel, queue, numbers(1, 2))
    for _ in range(2):
        assert channel.get(queue, no_ack=False) is not None
    publish_all(channel, queue, numbers(3, 4))
    channel.send("basic.nack", delivery_tag=2, multiple=True, requeue=True)
    assert channel.drain(queue) == numbers(3, 4)


def test_zero_keeps_nothing_but_lets_messages_through(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-length": 0})
    publish_all(channel, queue, numbers(1, 3))
    assert channel.counts(queue) == (0, 0)
    sibling = channel.connection.channel()
    sibling.consume(queue, no_ack=True)
    channel.publish("m", queue)
    assert sibling.delivery().body == b"m"


def test_a_ring_of_many(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-length": 100, "x-overflow": "drop-head"})
    publish_all(channel, queue, numbers(1, 3000))
    assert channel.drain(queue) == numbers(2901, 3000)


@pytest.mark.parametrize("overflow", ["reject-publish", "reject-publish-dlx"])
@pytest.mark.parametrize("limit", [0, 1, 5])
def test_publishes_are_refused(channel: Channel, overflow: str, limit: int) -> None:
    queue = channel.declare_queue(arguments={"x-max-length": limit, "x-overflow": overflow})
    channel.rpc("confirm.select")
    for number in range(1, limit + 4):
        channel.publish(str(number), queue)
        assert channel.receive().name == ("basic.ack" if number <= limit else "basic.nack")
    assert channel.drain(queue) == numbers(1, limit)


def test_refused_by_bytes(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-length-bytes": 10, "x-overflow": "reject-publish"})
    channel.rpc("confirm.select")
    answers = []
    for body in (b"12345", b"123456", b"7", b"8"):
        channel.publish(body, queue)
        answers.append(channel.receive().name)
    assert answers == ["basic.ack", "basic.nack", "basic.ack", "basic.ack"]


def test_room_that_was_made_is_used(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    channel.rpc("confirm.select")
    channel.publish("1", queue)
    channel.expect("basic.ack")
    channel.publish("2", queue)
    channel.expect("basic.nack")
    assert channel.drain(queue) == [b"1"]
    channel.publish("3", queue)
    channel.expect("basic.ack")


def test_without_confirms_a_refused_publish_is_dropped_in_silence(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    for number in range(1, 4):
        channel.publish(str(number), queue)
    channel.expect_nothing()
    assert channel.drain(queue) == [b"1"]


def test_a_consumer_with_room_receives_messages_that_a_full_queue_would_refuse(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    sibling = channel.connection.channel()
    sibling.consume(queue, no_ack=True)
    channel.rpc("confirm.select")
    for number in range(5):
        channel.publish(str(number), queue)
        assert sibling.delivery().body == str(number).encode()
        assert channel.receive().name == "basic.ack"
