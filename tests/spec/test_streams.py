"""Streams: queues that are read any number of times, from any offset."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.client import Channel, Connect

STREAM = {"x-queue-type": "stream"}


@pytest.fixture
def stream(channel: Channel, name: str) -> str:
    declare(channel, name)
    return name


def declare(channel: Channel, name: str, **arguments: Any) -> None:
    channel.declare_queue(name, exclusive=False, durable=True, arguments={**STREAM, **arguments})


def fill(channel: Channel, stream: str, count: int, first: int = 0, **properties: Any) -> None:
    with channel.settling("whole"):
        for number in range(first, first + count):
            channel.publish(str(number), stream, **properties)


def read(channel: Channel, stream: str, offset: Any = "first", *, prefetch: int = 1000, **arguments: Any) -> str:
    channel.rpc("basic.qos", prefetch_count=prefetch)
    return channel.consume(stream, arguments={"x-stream-offset": offset, **arguments})


def offsets(channel: Channel, count: int, *, ack: bool = True) -> list[int]:
    found = []
    for _ in range(count):
        delivery = channel.delivery()
        found.append(delivery.properties["headers"]["x-stream-offset"])
        if ack:
            channel.send("basic.ack", delivery_tag=delivery.delivery_tag)
    return found


def test_messages_stay_in_the_stream_after_reading(channel: Channel, other: Channel, stream: str) -> None:
    fill(channel, stream, 10)
    for reader in (channel, other, channel):
        tag = read(reader, stream)
        assert offsets(reader, 10) == list(range(10))
        reader.rpc("basic.cancel", consumer_tag=tag)


@pytest.mark.ours_only
def test_a_stream_counts_its_messages_and_consumers(channel: Channel, other: Channel, stream: str) -> None:
    fill(channel, stream, 10)
    read(other, stream)
    offsets(other, 10)
    assert channel.counts(stream) == (10, 1)


@pytest.mark.parametrize(
    ("offset", "expected"),
    [("first", 0), pytest.param("last", 9, marks=pytest.mark.ours_only), ("next", 10), (4, 4), (12, 12)],
)
def test_reading_begins_at_the_given_offset(
    channel: Channel, other: Channel, stream: str, offset: str | int, expected: int
) -> None:
    fill(channel, stream, 10)
    read(other, stream, offset)
    fill(channel, stream, 5, first=10)
    assert offsets(other, 15 - expected) == list(range(expected, 15))


def test_without_an_offset_reading_begins_with_the_next_message(channel: Channel, other: Channel, stream: str) -> None:
    fill(channel, stream, 3)
    other.rpc("basic.qos", prefetch_count=10)
    other.consume(stream)
    fill(channel, stream, 2, first=3)
    assert offsets(other, 2) == [3, 4]


def test_times(channel: Channel, other: Channel, connect: Connect, stream: str) -> None:
    fill(channel, stream, 3)
    # Brokers of a cluster may differ in their times, and a busy machine may take seconds for the reads below.
    time.sleep(7.5)
    middle = datetime.fromtimestamp(int(time.time()), UTC)
    fill(channel, stream, 3, first=3)
    read(other, stream, middle)
    assert offsets(other, 3) == [3, 4, 5]
    third = connect().channel()
    read(third, stream, "1h")
    assert offsets(third, 6) == list(range(6))
    fourth = connect().channel()
    read(fourth, stream, "5s")
    assert offsets(fourth, 1) == [3]


@pytest.mark.ours_only
@pytest.mark.parametrize("method", ["basic.ack", "basic.nack", "basic.reject"])
@pytest.mark.parametrize("prefetch", [1, 7])
def test_settlements_are_credit(channel: Channel, other: Channel, stream: str, prefetch: int, method: str) -> None:
    """As in RabbitMQ 4; earlier versions accepted acks only, and delivered some more than the requested number."""
    fill(channel, stream, 50)
    read(other, stream, prefetch=prefetch)
    assert offsets(other, prefetch, ack=False) == list(range(prefetch))
    other.expect_nothing()
    for tag in range(1, prefetch + 1):
        other.send(method, delivery_tag=tag)
    assert offsets(other, 50 - prefetch) == list(range(prefetch, 50))
    other.expect_nothing()


def test_content_is_kept(channel: Channel, other: Channel, stream: str) -> None:
    body = b"0123456789" * 50_000
    with channel.settling():
        channel.publish(body, stream, headers={"a": 1}, content_type="text/plain", delivery_mode=1)
        channel.publish(b"", stream)
    read(other, stream)
    first, second = other.delivery(), other.delivery()
    assert first.body == body
    assert first.properties["headers"] == {"a": 1, "x-stream-offset": 0}
    assert (first.properties["content_type"], first.properties["delivery_mode"]) == ("text/plain", 1)
    assert (first.exchange, first.routing_key, first.redelivered) == ("", stream, False)
    assert (second.body, second.properties["headers"]) == (b"", {"x-stream-offset": 1})


@pytest.mark.ours_only
@pytest.mark.parametrize(
    ("wish", "expected"),
    [
        ({"x-stream-filter": "red"}, [0, 3]),
        ({"x-stream-filter": ["red", "blue"]}, [0, 1, 3]),
        ({"x-stream-filter": "red", "x-stream-match-unfiltered": True}, [0, 2, 3]),
    ],
)
def test_filters(channel: Channel, other: Channel, stream: str, wish: dict[str, Any], expected: list[int]) -> None:
    with channel.settling():
        for value in ("red", "blue", None, "red"):
            channel.publish("m", stream, headers={} if value is None else {"x-stream-filter-value": value})
    read(other, stream, **wish)
    assert offsets(other, len(expected)) == expected
    other.expect_nothing()


def test_exchanges_route_to_a_stream(channel: Channel, other: Channel, stream: str, name: str) -> None:
    channel.bind(stream, "amq.topic", f"{name}.#")
    with channel.settling():
        channel.publish("m", f"{name}.a", "amq.topic")
    read(other, stream)
    delivery = other.delivery()
    assert (delivery.exchange, delivery.routing_key) == ("amq.topic", f"{name}.a")


def test_a_transaction_is_read_whole(channel: Channel, other: Channel, stream: str) -> None:
    read(other, stream)
    channel.rpc("tx.select")
    for number in range(3):
        channel.publish(str(number), stream)
    channel.expect_nothing()
    other.expect_nothing()
    channel.rpc("tx.commit")
    assert offsets(other, 3) == [0, 1, 2]


def test_methods_that_do_not_fit_a_stream_are_refused(channel: Channel, connect: Connect, stream: str) -> None:
    resource = f"queue '{stream}' in vhost '/'"
    channel.refused(
        406, "PRECONDITION_FAILED - consumer prefetch count is not set for …", "basic.consume", queue=stream
    )
    for name, text, options in (
        ("basic.get", f"basic.get not supported by stream queues {resource}", {}),
        ("queue.purge", f"queue.purge not supported by stream queues {resource}", {}),
        ("basic.consume", "automatic acknowledgement not supported by stream …", {"no_ack": True}),
    ):
        refused = connect().channel()
        refused.rpc("basic.qos", prefetch_count=5)
        refused.refused_hard(540, f"NOT_IMPLEMENTED - {text}", name, queue=stream, **options)


@pytest.mark.parametrize(
    ("options", "property_name"),
    [({"durable": False}, "non-durable"), ({"durable": True, "auto_delete": True}, "auto-delete")],
)
def test_properties_of_streams(channel: Channel, name: str, options: dict[str, Any], property_name: str) -> None:
    text = f"PRECONDITION_FAILED - invalid property '{property_name}' for queue '{name}' in vhost '/'"
    channel.refused(406, text, "queue.declare", queue=name, arguments=STREAM, **options)


def test_readers_receive_a_cancel_when_the_stream_is_deleted(channel: Channel, other: Channel, stream: str) -> None:
    tag = read(other, stream)
    channel.rpc("queue.delete", queue=stream)
    assert other.expect("basic.cancel").consumer_tag == tag


@pytest.mark.ours_only
def test_the_oldest_goes_first(channel: Channel, other: Channel, name: str) -> None:
    declare(channel, name, **{"x-max-length-bytes": 20_000, "x-stream-max-segment-size-bytes": 5_000})
    with channel.settling():
        for number in range(100):
            channel.publish(str(number) * 500, name)
    read(other, name)
    first = other.delivery().properties["headers"]["x-stream-offset"]
    assert 50 < first < 99
    assert offsets(other, 99 - first) == list(range(first + 1, 100))
    assert channel.counts(name)[0] == 100 - first


def test_a_slow_reader_delays_no_other(channel: Channel, other: Channel, connect: Connect, stream: str) -> None:
    read(other, stream, prefetch=1)
    fill(channel, stream, 500)
    quick = connect().channel()
    read(quick, stream)
    assert offsets(quick, 500) == list(range(500))
    assert offsets(other, 10) == list(range(10))
