"""Queue arguments that bound a queue: time to live, expiry, length, overflow; and priorities."""

from __future__ import annotations

import pika
import pytest
from pika import BasicProperties
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker, NackError

from .broker_under_test import Names
from .conftest import Connect
from .pika_mailbox import Mailbox, is_empty, put, take, take_all
from .waiting import wait_until

BODIES = [str(number).encode() for number in range(8)]


def test_messages_of_a_queue_with_a_ttl_expire(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue, arguments={"x-message-ttl": 30})
    # A confirm proves that the message was in the queue, so an empty queue shows that it has left.
    channel.confirm_delivery()
    put(channel, queue, BODIES)
    wait_until(lambda: is_empty(channel, queue), "expiry")
    assert channel.basic_get(queue) == (None, None, None)


def test_a_ttl_of_zero_expires_messages_that_cannot_be_delivered_at_once(
    channel: BlockingChannel, names: Names
) -> None:
    queue = names.queue()
    channel.queue_declare(queue, arguments={"x-message-ttl": 0})
    put(channel, queue, [b"nobody waits"])
    assert take_all(channel, queue) == []
    mailbox = Mailbox(channel, queue, auto_ack=True)
    put(channel, queue, [b"somebody waits"])
    mailbox.wait_for(1)
    assert mailbox.bodies == [b"somebody waits"]


def test_the_shorter_ttl_holds(channel: BlockingChannel, names: Names) -> None:
    patient, hasty = names.queue("patient"), names.queue("hasty")
    channel.queue_declare(patient, arguments={"x-message-ttl": 600_000})
    channel.queue_declare(hasty, arguments={"x-message-ttl": 30})
    channel.confirm_delivery()
    put(channel, patient, [b"short"], expiration="30")
    put(channel, hasty, [b"long"], expiration="600000")
    wait_until(lambda: is_empty(channel, patient) and is_empty(channel, hasty), "expiry")


def test_a_very_long_ttl_is_accepted(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    # RabbitMQ takes times up to 2^32 - 1 milliseconds.
    channel.queue_declare(queue, arguments={"x-message-ttl": 4_294_967_295, "x-expires": 4_294_967_295})
    put(channel, queue, [b"m"], expiration="4294967295")
    assert take(channel, queue).properties.expiration == "4294967295"


def test_an_unused_queue_expires(connection: pika.BlockingConnection, names: Names) -> None:
    queue = names.queue()
    connection.channel().queue_declare(queue, arguments={"x-expires": 100})

    def is_gone() -> bool:
        # Deleting a missing queue is no error, but a declare would be one; a binding neither uses nor keeps the queue.
        try:
            connection.channel().queue_bind(queue, "amq.direct", "k")
        except ChannelClosedByBroker as closed:
            return bool(closed.reply_code == 404)
        return False

    wait_until(is_gone, "the queue's end")


def test_a_queue_with_a_consumer_does_not_expire(connect: Connect, names: Names) -> None:
    kept, marker = names.queue("kept"), names.queue("marker")
    holder, channel = connect().channel(), connect().channel()
    holder.queue_declare(kept, arguments={"x-expires": 150})
    mailbox = Mailbox(holder, kept, auto_ack=True)
    cancelled: list[object] = []
    channel.queue_declare(marker, arguments={"x-message-ttl": 600})
    channel.confirm_delivery()
    put(channel, marker, [b"m"])
    holder.add_on_cancel_callback(cancelled.append)
    wait_until(lambda: is_empty(channel, marker), "a time longer than the queue's")
    put(channel, kept, [b"still here"])
    mailbox.wait_for(1)
    assert not cancelled


def test_the_oldest_are_dropped_beyond_max_length(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue, arguments={"x-max-length": 3})
    put(channel, queue, BODIES)
    assert take_all(channel, queue) == BODIES[-3:]


def test_max_length_counts_ready_messages_only(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue, arguments={"x-max-length": 2})
    put(channel, queue, BODIES[:2])
    held = [take(channel, queue, auto_ack=False) for _ in range(2)]
    put(channel, queue, BODIES[2:4])
    channel.basic_nack(held[-1].method.delivery_tag, multiple=True, requeue=True)
    assert take_all(channel, queue) == BODIES[2:4]


def test_max_length_bytes_counts_bodies(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue, arguments={"x-max-length-bytes": 100})
    put(channel, queue, [b"a" * 60, b"b" * 40, b"c" * 1], headers={"not": "counted" * 100})
    assert take_all(channel, queue) == [b"b" * 40, b"c" * 1]


def test_max_length_zero_keeps_nothing_but_delivers(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue, arguments={"x-max-length": 0})
    put(channel, queue, [b"dropped"])
    mailbox = Mailbox(channel, queue, auto_ack=True)
    put(channel, queue, [b"delivered"])
    mailbox.wait_for(1)
    assert mailbox.bodies == [b"delivered"]


@pytest.mark.parametrize(
    "limit", [{"x-max-length": 2}, {"x-max-length-bytes": 2}, {"x-max-length": 0}, {"x-max-length-bytes": 0}]
)
def test_reject_publish_nacks_beyond_the_limit(channel: BlockingChannel, names: Names, limit: dict[str, int]) -> None:
    queue = names.queue()
    channel.queue_declare(queue, arguments={**limit, "x-overflow": "reject-publish"})
    channel.confirm_delivery()
    room = max(limit.values())
    put(channel, queue, BODIES[:room])
    for body in BODIES[room:]:
        with pytest.raises(NackError):
            put(channel, queue, [body])
    assert take_all(channel, queue) == BODIES[:room]


def test_drop_head_confirms_all(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue, arguments={"x-max-length": 2, "x-overflow": "drop-head"})
    channel.confirm_delivery()
    put(channel, queue, BODIES)
    assert take_all(channel, queue) == BODIES[-2:]


def test_higher_priorities_come_first_and_equal_ones_in_order(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue, arguments={"x-max-priority": 10})
    sent = [(b"low 1", 1), (b"none 1", None), (b"high 1", 9), (b"low 2", 1), (b"high 2", 9), (b"beyond", 200)]
    for body, priority in sent:
        channel.basic_publish("", queue, body, BasicProperties(priority=priority))
    # A priority above the queue's maximum counts as the maximum; none counts as the lowest.
    assert take_all(channel, queue) == [b"beyond", b"high 1", b"high 2", b"low 1", b"low 2", b"none 1"]


def test_a_requeued_message_keeps_its_priority_and_place(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue, arguments={"x-max-priority": 5})
    for body, priority in ((b"a", 1), (b"b", 5), (b"c", 5)):
        channel.basic_publish("", queue, body, BasicProperties(priority=priority))
    first = take(channel, queue, auto_ack=False)
    assert first.body == b"b"
    channel.basic_publish("", queue, b"d", BasicProperties(priority=5))
    channel.basic_nack(first.method.delivery_tag, requeue=True)
    assert take_all(channel, queue) == [b"b", b"c", b"d", b"a"]


def test_a_full_priority_queue_drops_its_head(channel: BlockingChannel, names: Names) -> None:
    """The head is the next message to be delivered, so the most important one is dropped first, as RabbitMQ documents
    it."""
    queue = names.queue()
    channel.queue_declare(queue, arguments={"x-max-priority": 5, "x-max-length": 2})
    for body, priority in ((b"important", 5), (b"minor", 1), (b"middle", 3)):
        channel.basic_publish("", queue, body, BasicProperties(priority=priority))
    assert take_all(channel, queue) == [b"middle", b"minor"]


@pytest.mark.only_ours("RabbitMQ has no last-value queues")
def test_a_last_value_queue_keeps_one_message_per_key(channel: BlockingChannel, names: Names) -> None:
    queue = names.queue()
    channel.queue_declare(queue, arguments={"x-last-value-key": "symbol"})
    for symbol, price in (("A", b"1"), ("B", b"2"), ("A", b"3"), ("C", b"4"), ("B", b"5")):
        put(channel, queue, [price], headers={"symbol": symbol})
    assert sorted(take_all(channel, queue)) == [b"3", b"4", b"5"]
