"""basic.publish: contents of all sizes and shapes, mandatory, immediate, and frames that do not belong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Channel, ClosedByBrokerError
from tests.support.fields import content_header
from tests.support.frames import BODY, HEADER

SIZES = [0, 1, 4088, 4089, 131_063, 131_064, 131_065, 262_128, 1_000_000]
ALL_PROPERTIES: dict[str, Any] = {
    "content_type": "text/plain",
    "content_encoding": "utf-8",
    "headers": {"a": 1, "b": "two", "nested": {"list": [True, None, 2.5]}},
    "delivery_mode": 2,
    "priority": 7,
    "correlation_id": "c" * 255,
    "reply_to": "reply",
    "expiration": "60000",
    "message_id": "id",
    "timestamp": 2**40,
    "type": "type",
    "user_id": "guest",
    "app_id": "app",
    "cluster_id": "cluster",
}


@pytest.mark.parametrize("size", SIZES)
def test_bodies_of_all_sizes_come_back_as_they_were(channel: Channel, size: int) -> None:
    queue = channel.declare_queue()
    body = bytes(number * 31 % 251 for number in range(min(size, 5000))).ljust(size, b"\xce")
    channel.publish(body, queue)
    found = channel.get(queue)
    assert found is not None
    assert found.body == body


@pytest.mark.parametrize("pieces", [[1, 1, 1], [4, 1, 4088], [100] * 20])
def test_a_body_may_come_in_small_frames(channel: Channel, pieces: list[int]) -> None:
    queue = channel.declare_queue()
    channel.send("basic.publish", routing_key=queue)
    channel.connection.send_frame(HEADER, channel.number, content_header(sum(pieces), {}))
    for size in pieces:
        channel.connection.send_frame(BODY, channel.number, b"x" * size)
    assert channel.drain(queue) == [b"x" * sum(pieces)]


@pytest.mark.parametrize("properties", [{}, ALL_PROPERTIES, *({key: value} for key, value in ALL_PROPERTIES.items())])
def test_properties_come_back_as_they_were(channel: Channel, properties: dict[str, Any]) -> None:
    queue = channel.declare_queue()
    channel.publish("m", queue, **properties)
    found = channel.get(queue)
    assert found is not None
    assert found.properties == properties
    assert found.header == content_header(1, properties)


def test_properties_need_not_be_text(channel: Channel) -> None:
    queue = channel.declare_queue()
    properties: dict[str, Any] = {
        "content_type": b"\xff\xfe",
        "correlation_id": b"\x00\x80",
        "message_id": bytes(range(128, 255)),
    }
    channel.publish("m", queue, **properties)
    found = channel.get(queue)
    assert found is not None
    assert found.header == content_header(1, properties)


def test_a_routing_key_need_not_be_text(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.bind(queue, "amq.fanout")
    channel.send("basic.publish", exchange="amq.fanout", routing_key=b"\xff\x00\x80")
    channel.send_content(b"m")
    found = channel.get(queue)
    assert found is not None
    assert found.routing_key.encode("utf-8", "surrogateescape") == b"\xff\x00\x80"


def test_deliveries_carry_the_exchange_and_the_key(channel: Channel, name: str) -> None:
    queue = channel.declare_queue()
    channel.declare_exchange(name, "topic")
    channel.bind(queue, name, "#")
    channel.publish("m", "a.b.c", name)
    found = channel.get(queue)
    assert found is not None
    assert (found.exchange, found.routing_key, found.redelivered) == (name, "a.b.c", False)


@pytest.mark.parametrize("how", ["whole", "bytewise"])
def test_many_publishes_in_any_pieces(channel: Channel, how: str) -> None:
    queue = channel.declare_queue()
    count = 2000 if how == "whole" else 40
    with channel.connection.in_segments(how):
        for number in range(count):
            channel.publish(f"message {number}" * (number % 5), queue, message_id=str(number))
    found = channel.drain(queue)
    assert found == [(f"message {number}" * (number % 5)).encode() for number in range(count)]


def test_a_message_without_a_route_is_dropped(channel: Channel, name: str) -> None:
    channel.publish("m", name)
    channel.expect_nothing()


def test_an_unroutable_mandatory_message_is_returned(channel: Channel, name: str) -> None:
    channel.publish("body", name, "amq.topic", mandatory=True, **ALL_PROPERTIES)
    found = channel.expect("basic.return")
    assert (found.reply_code, found.reply_text) == (312, "NO_ROUTE")
    assert (found.exchange, found.routing_key) == ("amq.topic", name)
    assert (found.properties, found.body) == (ALL_PROPERTIES, b"body")


def test_mandatory_means_nothing_when_there_is_a_route(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.publish("m", queue, mandatory=True)
    channel.expect_nothing()
    assert channel.drain(queue) == [b"m"]


def test_returns_keep_their_order(channel: Channel, name: str) -> None:
    with channel.connection.in_segments("whole"):
        for number in range(50):
            channel.publish(b"x" * (number * 1000), f"{name}-{number}", mandatory=True)
    for number in range(50):
        found = channel.expect("basic.return")
        assert (found.routing_key, len(found.body)) == (f"{name}-{number}", number * 1000)


def test_immediate_is_not_implemented(channel: Channel) -> None:
    channel.publish("m", immediate=True)
    channel.connection.expect_close(540, "NOT_IMPLEMENTED - immediate=true", "basic.publish")


def test_an_exchange_that_is_missing(channel: Channel, name: str) -> None:
    channel.publish("m", "k", name)
    channel.expect_close(404, f"NOT_FOUND - no exchange '{name}' in vhost '/'", "basic.publish")


@pytest.mark.parametrize("how", ["whole", "bytewise"])
def test_publishes_before_an_error_in_a_batch_count(channel: Channel, name: str, how: str) -> None:
    queue = channel.declare_queue(name)
    with channel.connection.in_segments(how):
        channel.publish("before", queue)
        channel.publish("wrong", "k", name + "-missing")
        channel.publish("after", queue)
    channel.expect_close(404, f"NOT_FOUND - no exchange '{name}-missing' in vhost '/'", "basic.publish")
    assert channel.connection.channel().drain(queue) == [b"before"]


WRONG = "UNEXPECTED_FRAME - expected "


def test_a_method_in_place_of_the_header(channel: Channel) -> None:
    channel.send("basic.publish")
    channel.send("channel.flow", active=True)
    text = WRONG + "content header for class 60, got non content header frame instead"
    channel.connection.expect_close(505, text, "basic.publish")


def test_a_body_in_place_of_the_header(channel: Channel) -> None:
    channel.send("basic.publish")
    channel.connection.send_frame(BODY, channel.number, b"x")
    text = WRONG + "content header for class 60, got non content header frame instead"
    channel.connection.expect_close(505, text, "basic.publish")


def test_a_header_of_another_class(channel: Channel) -> None:
    channel.send("basic.publish")
    channel.connection.send_frame(HEADER, channel.number, content_header(1, {}, class_id=50))
    text = WRONG + "content header for class 60, got one for class 50 instead"
    channel.connection.expect_close(505, text, "basic.publish")


@pytest.mark.parametrize("second", ["method", "header"])
def test_another_frame_in_place_of_the_body(channel: Channel, second: str) -> None:
    channel.send("basic.publish")
    channel.connection.send_frame(HEADER, channel.number, content_header(5, {}))
    if second == "method":
        channel.send("channel.flow", active=True)
    else:
        channel.connection.send_frame(HEADER, channel.number, content_header(5, {}))
    text = WRONG + "content body, got non content body frame instead"
    channel.connection.expect_close(505, text, "basic.publish")


@pytest.mark.parametrize("kind", [HEADER, BODY])
def test_content_without_a_method(channel: Channel, kind: int) -> None:
    channel.connection.send_frame(kind, channel.number, content_header(1, {}))
    text = "UNEXPECTED_FRAME - expected method frame, got non method frame instead"
    channel.connection.expect_close(505, text)


@pytest.mark.parametrize("payload", [b"\x00\x3c\x00", b""])
def test_a_header_that_is_too_short(channel: Channel, payload: bytes) -> None:
    channel.send("basic.publish")
    channel.connection.send_frame(HEADER, channel.number, payload)
    channel.connection.expect_close(501, "FRAME_ERROR - type 2, all octets = …")


@pytest.mark.parametrize(
    "tail", [b"\xff\xfc", b"\x80\x00\x05a", b"\x20\x00\x00\x00\x00\x09\x01a", b"\x00\x00extra", b"\x00\x01\x00\x00"]
)
def test_a_header_with_properties_that_are_none(channel: Channel, tail: bytes) -> None:
    queue = channel.declare_queue()
    channel.send("basic.publish", routing_key=queue)
    channel.connection.send_frame(HEADER, channel.number, b"\x00\x3c\x00\x00" + b"\x00" * 8 + tail)
    channel.connection.expect_end()


def test_more_body_than_announced(channel: Channel) -> None:
    """RabbitMQ accepts the whole frame, another broker may refuse it; the following frames must not be misread in
    either case."""
    channel.send("basic.publish", routing_key="nobody")
    channel.connection.send_frame(HEADER, channel.number, content_header(2, {}))
    channel.connection.send_frame(BODY, channel.number, b"abc")
    channel.send("channel.flow", active=True)
    try:
        channel.expect("channel.flow-ok")
    except ClosedByBrokerError as closed:
        code = closed.method.reply_code
    else:
        code = None
    assert code in (None, 501, 505)


@pytest.mark.ours_only
def test_a_message_larger_than_the_limit(channel: Channel) -> None:
    size = 2**40
    channel.send("basic.publish", routing_key="nobody")
    channel.connection.send_frame(HEADER, channel.number, content_header(size, {}))
    channel.expect_close(406, f"PRECONDITION_FAILED - message size {size} is larger than …", "basic.publish")
