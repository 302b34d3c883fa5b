"""Field tables of every type, in RabbitMQ's dialect, in both directions."""

from __future__ import annotations

import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.support.client import Channel
from tests.support.fields import Typed, content_header, field_value, longstr, parse_content_header, shortstr, table
from tests.support.frames import BODY, HEADER
from tests.support.methods import Method

VALUES = [
    Typed("t", True),
    Typed("t", False),
    Typed("b", -128),
    Typed("b", 127),
    Typed("B", 255),
    Typed("s", -32768),
    Typed("u", 65535),
    Typed("I", -(2**31)),
    Typed("i", 2**32 - 1),
    Typed("l", -(2**63)),
    Typed("l", 2**63 - 1),
    Typed("f", 1.5),
    Typed("d", -2.25e300),
    Typed("D", Decimal("3.14")),
    Typed("D", Decimal(7)),
    Typed("S", ""),
    Typed("S", "text with ümlauts 漢字"),
    Typed("x", b"\x00\xff\xce"),
    Typed("T", datetime(2020, 2, 29, 12, 0, tzinfo=UTC)),
    Typed("T", 0),
    Typed("V", None),
    Typed("A", []),
    Typed("A", [1, "two", None, [3.0, {"four": 4}]]),
    Typed("F", {}),
    Typed("F", {"deep": {"deeper": {"deepest": [1, 2, 3]}}}),
]


def round_trip(channel: Channel, headers: bytes) -> Method:
    """Publishes with these bytes as the headers table; returns the message that is delivered."""
    queue = channel.declare_queue()
    channel.publish("m", queue, headers=headers)
    found = channel.get(queue)
    assert found is not None
    return found


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_each_type_comes_back_byte_for_byte(channel: Channel, value: Typed) -> None:
    headers = table({"h": value})
    assert round_trip(channel, headers).header == content_header(1, {"headers": headers})


def test_all_types_in_one_table(channel: Channel) -> None:
    headers = table({f"h{number}": value for number, value in enumerate(VALUES)})
    assert round_trip(channel, headers).header == content_header(1, {"headers": headers})


@pytest.mark.parametrize("raw", [b"", b"\x80\x81\xff", b"a\x00b"])
def test_strings_may_be_any_bytes(channel: Channel, raw: bytes) -> None:
    headers = longstr(shortstr("h") + b"S" + longstr(raw))
    assert round_trip(channel, headers).header == content_header(1, {"headers": headers})


@pytest.mark.parametrize("key", ["", "k" * 255, "schlüssel", "with space"])
def test_keys(channel: Channel, key: str) -> None:
    headers = table({key: "v"})
    assert round_trip(channel, headers).headers == {key: "v"}


def test_an_empty_table(channel: Channel) -> None:
    assert round_trip(channel, table({})).properties == {"headers": {}}


def test_a_large_table(channel: Channel) -> None:
    headers = table({f"key-{number}": "v" * 50 for number in range(1500)})
    assert round_trip(channel, headers).header == content_header(1, {"headers": headers})


def test_a_key_that_occurs_twice_passes(channel: Channel) -> None:
    pair = shortstr("k") + field_value("v")
    found = round_trip(channel, longstr(pair + pair))
    assert found.headers == {"k": "v"}


@pytest.mark.parametrize("levels", [10, 30])
def test_nested_tables(channel: Channel, levels: int) -> None:
    value: Any = "core"
    for level in range(levels):
        value = {"t": value} if level % 2 else [value]
    headers = table({"h": value})
    assert round_trip(channel, headers).header == content_header(1, {"headers": headers})


@pytest.mark.parametrize(
    "value",
    [
        b"F" + longstr(b"\x05tt\x01"),
        b"F" + longstr(shortstr("k") + b"S" + b"\x00\x00\x00\x09short"),
        b"A" + longstr(b"I\x00"),
        b"A" + longstr(b"F" + longstr(shortstr("k") + b"?")),
    ],
)
def test_a_message_with_a_garbled_header_reaches_no_consumer(channel: Channel, other: Channel, value: bytes) -> None:
    """The consumer's client would fail on an error of the publisher's client."""
    queue = channel.declare_queue(exclusive=False, auto_delete=True)
    other.consume(queue, no_ack=True)
    channel.publish("m", queue, headers=longstr(shortstr("h") + value))
    channel.connection.expect_end()
    other.publish("good", queue)
    assert other.delivery().body == b"good"


@pytest.mark.ours_only
def test_tables_nested_beyond_measure_harm_one_connection_at_most(channel: Channel, other: Channel) -> None:
    value = b""
    for _ in range(20_000):
        value = longstr(b"A" + value)
    queue = channel.declare_queue()
    channel.send("basic.publish", routing_key=queue, exchange="amq.headers")
    headers = longstr(shortstr("h") + b"A" + value)
    channel.connection.send_frame(HEADER, channel.number, content_header(1, {"headers": headers}))
    channel.connection.send_frame(BODY, channel.number, b"m")
    channel.send("queue.declare", queue="", exclusive=True, arguments=headers)
    other.expect_nothing()


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_each_type_may_be_an_argument(channel: Channel, value: Typed) -> None:
    queue = channel.declare_queue(arguments={"x-unknown-argument": value})
    channel.rpc("queue.bind", queue=queue, exchange="amq.direct", routing_key="k", arguments={"any": value})
    channel.consume(queue, arguments={"any": value})
    channel.rpc("queue.unbind", queue=queue, exchange="amq.direct", routing_key="k", arguments={"any": value})


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_each_type_survives_a_dead_letter(channel: Channel, value: Typed) -> None:
    """The broker rewrites the headers here: its additions must not change the existing ones."""
    grave = channel.declare_queue()
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave, "x-max-length": 0}
    queue = channel.declare_queue(arguments=arguments)
    channel.consume(grave, no_ack=True)
    channel.publish("m", queue, headers=table({"h": value}))
    found = channel.delivery()
    _, properties = parse_content_header(found.header, typed=True)
    sent = parse_content_header(content_header(1, {"headers": table({"h": value})}), typed=True)[1]
    assert properties["headers"]["h"] == sent["headers"]["h"]


def test_the_timestamp_property_is_a_64_bit_number(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.publish("m", queue, timestamp=2**63 - 1)
    found = channel.get(queue)
    assert found is not None
    assert found.properties["timestamp"] == 2**63 - 1


@pytest.mark.ours_only
def test_floats_keep_their_bits(channel: Channel) -> None:
    for bits in (0x7FF0000000000000, 0xFFF0000000000000, 0x7FF8000000000001, 0x8000000000000000, 1):
        headers = longstr(shortstr("h") + b"d" + struct.pack(">Q", bits))
        assert round_trip(channel, headers).header == content_header(1, {"headers": headers})
