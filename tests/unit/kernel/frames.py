"""Bytes as a client sends them, and what a client reads from the bytes it gets."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def short(text: bytes) -> bytes:
    return bytes((len(text),)) + text


def headers(**fields: bytes) -> bytes:
    """A table of long strings; underscores in names stand for hyphens."""
    body = b"".join(
        short(name.replace("_", "-").encode()) + b"S" + struct.pack(">I", len(value)) + value
        for name, value in fields.items()
    )
    return struct.pack(">I", len(body)) + body


def properties(
    *,
    table: bytes | None = None,
    delivery_mode: int | None = None,
    priority: int | None = None,
    reply_to: bytes | None = None,
    expiration: bytes | None = None,
    user_id: bytes | None = None,
) -> bytes:
    """Property flags and values, in their order."""
    flags, values = 0, b""
    for flag, value in (
        (1 << 13, table),
        (1 << 12, None if delivery_mode is None else bytes((delivery_mode,))),
        (1 << 11, None if priority is None else bytes((priority,))),
        (1 << 9, None if reply_to is None else short(reply_to)),
        (1 << 8, None if expiration is None else short(expiration)),
        (1 << 4, None if user_id is None else short(user_id)),
    ):
        if value is not None:
            flags |= flag
            values += value
    return struct.pack(">H", flags) + values


NO_PROPERTIES = properties()
PERSISTENT = properties(delivery_mode=2)


def header_payload(body_size: int, props: bytes = NO_PROPERTIES) -> bytes:
    return struct.pack(">HHQ", 60, 0, body_size) + props


def publish_method(key: bytes, exchange: bytes = b"", bits: int = 0) -> bytes:
    return struct.pack(">HHH", 60, 40, 0) + short(exchange) + short(key) + bytes((bits,))


def publish(
    key: bytes,
    body: bytes = b"",
    props: bytes = NO_PROPERTIES,
    *,
    channel: int = 1,
    exchange: bytes = b"",
    bits: int = 0,
    chunk: int = 1 << 30,
) -> bytes:
    """All frames of one publish."""
    parts = [
        frame(1, channel, publish_method(key, exchange, bits)),
        frame(2, channel, header_payload(len(body), props)),
    ]
    parts += [frame(3, channel, body[at : at + chunk]) for at in range(0, len(body), chunk)]
    return b"".join(parts)


def with_content(method: bytes, body: bytes, props: bytes, channel: int, chunk: int) -> bytes:
    parts = [frame(1, channel, method), frame(2, channel, header_payload(len(body), props))]
    parts += [frame(3, channel, body[at : at + chunk]) for at in range(0, len(body), chunk)]
    return b"".join(parts)


def deliver_method(
    consumer: bytes = b"c",
    tag: int = 1,
    redelivered: bool = False,
    key: bytes = b"",
    exchange: bytes = b"",
    place: tuple[int, int] | None = None,
) -> bytes:
    start = struct.pack(">HH", 60, 60) + short(consumer) + struct.pack(">QB", tag, redelivered)
    return start + routing(key, exchange) + (b"" if place is None else struct.pack(">QQ", *place))


def return_method(key: bytes = b"k", exchange: bytes = b"", text: bytes = b"NO_ROUTE") -> bytes:
    return struct.pack(">HHH", 60, 50, 312) + short(text) + routing(key, exchange)


def get_ok_method(tag: int = 1, redelivered: bool = False, key: bytes = b"k", exchange: bytes = b"") -> bytes:
    return struct.pack(">HHQB", 60, 71, tag, redelivered) + routing(key, exchange) + struct.pack(">I", 7)


def routing(key: bytes, exchange: bytes = b"") -> bytes:
    return short(exchange) + short(key)


def deliver(
    consumer: bytes = b"c",
    tag: int = 1,
    body: bytes = b"",
    props: bytes = NO_PROPERTIES,
    *,
    channel: int = 1,
    redelivered: bool = False,
    key: bytes = b"k",
    exchange: bytes = b"",
    chunk: int = 1 << 30,
    place: tuple[int, int] | None = None,
) -> bytes:
    """All frames of one delivery, as another broker sends them."""
    return with_content(deliver_method(consumer, tag, redelivered, key, exchange, place), body, props, channel, chunk)


def ack(tag: int, multiple: bool = False, *, channel: int = 1) -> bytes:
    return frame(1, channel, struct.pack(">HHQB", 60, 80, tag, multiple))


def reject(tag: int, requeue: bool, *, channel: int = 1) -> bytes:
    return frame(1, channel, struct.pack(">HHQB", 60, 90, tag, requeue))


def nack(tag: int, multiple: bool, requeue: bool, *, channel: int = 1) -> bytes:
    return frame(1, channel, struct.pack(">HHQB", 60, 120, tag, multiple | requeue << 1))


class Delivered(NamedTuple):
    """One basic.deliver with its content."""

    channel: int
    consumer: bytes
    tag: int
    redelivered: bool
    routing: bytes
    header: bytes
    body: bytes


class Confirmed(NamedTuple):
    """One basic.ack or basic.nack to a publisher."""

    channel: int
    positive: bool
    number: int
    multiple: bool


def split_frames(data: bytes) -> list[tuple[int, int, bytes]]:
    found = []
    offset = 0
    while offset < len(data):
        kind, channel, size = struct.unpack_from(">BHI", data, offset)
        end = offset + 7 + size
        assert data[end] == 0xCE
        found.append((kind, channel, data[offset + 7 : end]))
        offset = end + 1
    return found


def read(data: bytes) -> list[Any]:
    """Deliveries and confirms in what a session sent."""
    events: list[Any] = []
    frames = iter(split_frames(data))
    for kind, channel, payload in frames:
        assert kind == 1
        method = struct.unpack_from(">HH", payload)
        if method in ((60, 80), (60, 120)):
            number, bits = struct.unpack_from(">QB", payload, 4)
            events.append(Confirmed(channel, method == (60, 80), number, bool(bits & 1)))
            continue
        assert method == (60, 60)
        tag_end = 5 + payload[4]
        tag, redelivered = struct.unpack_from(">QB", payload, tag_end)
        _, _, header = next(frames)
        (missing,) = struct.unpack_from(">Q", header, 4)
        body = b""
        while len(body) < missing:
            body += next(frames)[2]
        events.append(
            Delivered(channel, payload[5:tag_end], tag, bool(redelivered), payload[tag_end + 9 :], header, body)
        )
    return events
