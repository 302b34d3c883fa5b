"""A consumer that does not ack in time loses its channel; the time is an argument of the queue here."""

from __future__ import annotations

import pytest

from tests.support.client import Channel

pytestmark = pytest.mark.ours_only

TEXT = (
    "PRECONDITION_FAILED - delivery acknowledgement on channel {} timed out. Timeout value used: {} ms. "
    "This timeout value can be configured, see consumers doc guide to learn more"
)


def test_the_channel_is_closed_and_its_messages_come_back(channel: Channel, name: str) -> None:
    queue = channel.declare_queue(name, arguments={"x-consumer-timeout": 300})
    reader = channel.connection.channel()
    reader.consume(queue)
    channel.publish("m", queue)
    reader.delivery()
    closed = reader.expect("channel.close")
    assert (closed.reply_code, closed.reply_text) == (406, TEXT.format(reader.number, 300))
    assert (closed.class_id, closed.method_id) == (0, 0)
    reader.send("channel.close-ok")
    again = channel.get(queue)
    assert again is not None
    assert (again.body, again.redelivered) == (b"m", True)


def test_a_consumer_that_acks_in_time_stays(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-consumer-timeout": 700})
    pace = channel.declare_queue(
        arguments={"x-message-ttl": 250, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
    )
    channel.consume(queue)
    for _ in range(5):
        # The dead letter serves as the clock: each round takes a quarter of a second.
        channel.publish("m", pace)
        channel.send("basic.ack", delivery_tag=channel.delivery().delivery_tag)
    channel.expect_nothing()


def test_consumers_without_acks_have_no_time_to_keep(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-consumer-timeout": 100})
    channel.consume(queue, no_ack=True)
    channel.publish("m", queue)
    channel.delivery()
    clock = channel.declare_queue(
        arguments={"x-message-ttl": 500, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
    )
    channel.publish("tick", clock)
    assert channel.delivery().body == b"tick"
    channel.expect_nothing()


def test_other_channels_go_on(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-consumer-timeout": 200})
    slow = channel.connection.channel()
    slow.consume(queue)
    channel.publish("m", queue)
    slow.delivery()
    assert slow.expect("channel.close").reply_code == 406
    slow.send("channel.close-ok")
    channel.expect_nothing()
