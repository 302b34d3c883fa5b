"""x-message-ttl and the expiration of single messages."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.client import Channel

LATEST_S = 10.0


def until_empty(channel: Channel, queue: str) -> float:
    """Returns how long it takes until no message is ready."""
    begin = time.monotonic()
    while channel.counts(queue)[0]:
        assert time.monotonic() - begin < LATEST_S, "messages do not expire"
        time.sleep(0.01)
    return time.monotonic() - begin


@pytest.mark.parametrize(
    ("arguments", "properties"),
    [({"x-message-ttl": 200}, {}), ({}, {"expiration": "200"}), ({"x-message-ttl": 60_000}, {"expiration": "200"})],
)
def test_messages_expire(channel: Channel, arguments: dict[str, Any], properties: dict[str, Any]) -> None:
    queue = channel.declare_queue(arguments=arguments)
    with channel.settling():
        for _ in range(5):
            channel.publish("m", queue, **properties)
    assert until_empty(channel, queue) >= 0.15
    assert channel.get(queue) is None


def test_the_shorter_of_both_times_holds(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-message-ttl": 100})
    channel.publish("m", queue, expiration="60000")
    until_empty(channel, queue)


@pytest.mark.parametrize(
    ("arguments", "properties"), [({"x-message-ttl": 0}, {}), ({}, {"expiration": "0"})], ids=["queue", "message"]
)
def test_zero_means_now_or_never(channel: Channel, arguments: dict[str, Any], properties: dict[str, Any]) -> None:
    queue = channel.declare_queue(arguments=arguments)
    channel.publish("too late", queue, **properties)
    assert until_empty(channel, queue) < 5
    sibling = channel.connection.channel()
    sibling.consume(queue, no_ack=True)
    channel.publish("in time", queue, **properties)
    assert sibling.delivery().body == b"in time"


def test_an_unacked_message_does_not_expire(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-message-ttl": 100})
    channel.publish("held", queue)
    assert channel.get(queue, no_ack=False) is not None
    channel.publish("timer", queue)
    until_empty(channel, queue)
    channel.send("basic.ack", delivery_tag=1)
    channel.expect_nothing()


def test_a_message_requeued_after_its_time_to_live_is_dropped(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-message-ttl": 100})
    channel.publish("held", queue)
    assert channel.get(queue, no_ack=False) is not None
    channel.publish("timer", queue)
    until_empty(channel, queue)
    channel.send("basic.nack", delivery_tag=1, requeue=True)
    until_empty(channel, queue)
    assert channel.get(queue) is None


def test_the_property_stays_with_the_message(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.publish("m", queue, expiration="60000")
    found = channel.get(queue)
    assert found is not None
    assert found.properties == {"expiration": "60000"}


def test_messages_that_are_expired_are_never_delivered(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.publish("short", queue, expiration="100")
    channel.publish("long", queue, expiration="60000")
    channel.publish("short", queue, expiration="100")
    channel.publish("none", queue)
    time.sleep(0.3)
    assert channel.drain(queue) == [b"long", b"none"]


@pytest.mark.parametrize("expiration", ["0", "1", "4294967295", str(2**27 * 1000)])
def test_times_that_are_taken(channel: Channel, expiration: str) -> None:
    if expiration == str(2**27 * 1000):
        # RabbitMQ 3.10 accepts this as a queue's argument only.
        queue = channel.declare_queue(arguments={"x-message-ttl": 2**27 * 1000})
        channel.publish("m", queue)
    else:
        queue = channel.declare_queue()
        channel.publish("m", queue, expiration=expiration)
    channel.expect_nothing()


@pytest.mark.parametrize(
    ("expiration", "reason"),
    [
        ("soon", "no_integer"),
        ("", "no_integer"),
        ("-1", "{value_negative,-1}"),
        ("1.5", '{leftover_string,".5"}'),
        ("10ms", '{leftover_string,"ms"}'),
    ],
)
def test_times_that_are_none(channel: Channel, expiration: str, reason: str) -> None:
    channel.publish("m", "nobody", expiration=expiration)
    text = f"PRECONDITION_FAILED - invalid expiration '{expiration}': {reason}"
    channel.expect_close(406, text, "basic.publish")


def test_purge_and_ttl_together(channel: Channel) -> None:
    queue = channel.declare_queue(arguments={"x-message-ttl": 150})
    channel.publish("purged", queue)
    assert channel.rpc("queue.purge", queue=queue).message_count == 1
    channel.publish("expires", queue)
    until_empty(channel, queue)
