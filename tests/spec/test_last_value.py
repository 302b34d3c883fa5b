"""x-last-value-key, our extension: of the messages with one value of a header the queue keeps the newest."""

from __future__ import annotations

import pytest

from tests.support.client import Channel

pytestmark = pytest.mark.ours_only


def keyed(channel: Channel) -> str:
    return channel.declare_queue(arguments={"x-last-value-key": "key"})


def publish(channel: Channel, queue: str, *messages: tuple[object, str]) -> None:
    """Each message is a key and a body."""
    for key, body in messages:
        channel.publish(body, queue, headers={"key": key})


@pytest.mark.parametrize("how", ["asis", "whole", "bytewise"])
def test_the_newest_of_each_key_is_kept(channel: Channel, how: str) -> None:
    queue = keyed(channel)
    with channel.connection.in_segments(how):
        publish(channel, queue, ("a", "a1"), ("b", "b1"), ("a", "a2"), ("c", "c1"), ("a", "a3"), ("b", "b2"))
    assert channel.counts(queue) == (3, 0)
    assert sorted(channel.drain(queue)) == [b"a3", b"b2", b"c1"]


def test_messages_without_the_key_are_all_kept(channel: Channel) -> None:
    queue = keyed(channel)
    channel.publish("1", queue)
    channel.publish("2", queue, headers={"other": "a"})
    publish(channel, queue, ("a", "a1"), ("a", "a2"))
    channel.publish("3", queue)
    assert sorted(channel.drain(queue)) == [b"1", b"2", b"3", b"a2"]


def test_values_of_different_types_are_different_keys(channel: Channel) -> None:
    queue = keyed(channel)
    publish(channel, queue, (1, "number"), ("1", "text"), (True, "bool"), (1, "number again"))
    assert sorted(channel.drain(queue)) == [b"bool", b"number again", b"text"]


def test_a_waiting_consumer_gets_every_value(channel: Channel) -> None:
    queue = keyed(channel)
    channel.consume(queue, no_ack=True)
    for number in range(3):
        publish(channel, queue, ("a", str(number)))
        assert channel.delivery().body == str(number).encode()


def test_an_unacked_message_is_not_replaced(channel: Channel) -> None:
    queue = keyed(channel)
    publish(channel, queue, ("a", "old"))
    assert channel.get(queue, no_ack=False) is not None
    publish(channel, queue, ("a", "new"))
    channel.send("basic.ack", delivery_tag=1)
    assert channel.drain(queue) == [b"new"]


def test_an_old_value_that_is_requeued_gives_way_to_the_new_one(channel: Channel) -> None:
    queue = keyed(channel)
    publish(channel, queue, ("a", "old"))
    assert channel.get(queue, no_ack=False) is not None
    publish(channel, queue, ("a", "new"))
    channel.send("basic.nack", delivery_tag=1, requeue=True)
    assert channel.drain(queue) == [b"new"]


def test_a_requeued_value_stays_if_nothing_newer_came(channel: Channel) -> None:
    queue = keyed(channel)
    publish(channel, queue, ("a", "only"))
    assert channel.get(queue, no_ack=False) is not None
    channel.send("basic.nack", delivery_tag=1, requeue=True)
    assert channel.drain(queue) == [b"only"]


def test_replaced_values_are_no_dead_letters(channel: Channel) -> None:
    grave = channel.declare_queue()
    arguments = {"x-last-value-key": "key", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave}
    queue = channel.declare_queue(arguments=arguments)
    publish(channel, queue, ("a", "1"), ("a", "2"))
    assert channel.counts(queue) == (1, 0)
    assert channel.counts(grave) == (0, 0)


def test_replaced_values_are_confirmed(channel: Channel) -> None:
    queue = keyed(channel)
    with channel.settling("whole"):
        for number in range(100):
            publish(channel, queue, (number % 7, str(number)))
    assert sorted(int(body) for body in channel.drain(queue)) == list(range(93, 100))


def test_many_keys(channel: Channel) -> None:
    queue = keyed(channel)
    with channel.connection.in_segments("whole"):
        for number in range(3000):
            publish(channel, queue, (f"key {number % 500}", str(number)))
    assert sorted(int(body) for body in channel.drain(queue)) == list(range(2500, 3000))


def test_with_a_length_limit(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-last-value-key": "key", "x-max-length": 2})
    publish(channel, queue, ("a", "a1"), ("b", "b1"), ("a", "a2"), ("c", "c1"))
    assert channel.drain(queue) == [b"a2", b"c1"]


@pytest.mark.parametrize("value", ["", 5, True, None, "k" * 256])
def test_a_key_that_is_no_name(channel: Channel, name: str, value: object) -> None:
    text = f"PRECONDITION_FAILED - invalid arg 'x-last-value-key' for queue '{name}' in vhost '/': …"
    arguments = {"x-last-value-key": value}
    channel.refused(406, text, "queue.declare", queue=name, exclusive=True, arguments=arguments)
