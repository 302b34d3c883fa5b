"""Field values, field tables, method arguments and content properties, to and from bytes.

The dialect is RabbitMQ's: `l` is a signed 64 bit integer, `s` a signed 16 bit one, `x` a byte array.
Values that need a certain type on the wire are written as `Typed("b", -1)`; plain Python values get the usual one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

_FIXED = {"b": "b", "B": "B", "s": "h", "u": "H", "I": "i", "i": "I", "l": "q", "f": "f", "d": "d", "T": "Q"}


@dataclass(frozen=True)
class Typed:
    """A field value together with the type letter it has on the wire."""

    tag: str
    value: Any


class Reader:
    """Reads values from the beginning of a buffer."""

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position

    def take(self, count: int) -> bytes:
        end = self.position + count
        assert end <= len(self.data), f"wanted {count} bytes at {self.position} of {len(self.data)}"
        piece = self.data[self.position : end]
        self.position = end
        return piece

    def number(self, code: str) -> Any:
        return struct.unpack(">" + code, self.take(struct.calcsize(">" + code)))[0]

    def shortstr(self) -> str:
        # Names are text, but the broker may forward any bytes that it has not parsed.
        return self.take(self.number("B")).decode("utf-8", "surrogateescape")

    def longstr(self) -> bytes:
        return self.take(self.number("I"))

    def table(self, *, typed: bool = False) -> dict[str, Any]:
        inner = Reader(self.longstr())
        found: dict[str, Any] = {}
        while inner.position < len(inner.data):
            key = inner.shortstr()
            found[key] = inner.value(typed=typed)
        return found

    def value(self, *, typed: bool = False) -> Any:
        tag = self.take(1).decode()
        plain = self._value_of(tag, typed)
        return Typed(tag, plain) if typed else plain

    def _value_of(self, tag: str, typed: bool) -> Any:
        if tag in _FIXED and tag != "T":
            return self.number(_FIXED[tag])
        match tag:
            case "t":
                return self.number("B") != 0
            case "S":
                return self.longstr().decode("utf-8", "surrogateescape")
            case "x":
                return self.longstr()
            case "T":
                return datetime.fromtimestamp(self.number("Q"), UTC)
            case "D":
                scale = self.number("B")
                return Decimal(self.number("i")).scaleb(-scale)
            case "F":
                return self.table(typed=typed)
            case "A":
                return self._array(typed)
            case "V":
                return None
            case _:
                raise AssertionError(f"unknown field type {tag!r}")

    def _array(self, typed: bool) -> list[Any]:
        inner = Reader(self.longstr())
        found = []
        while inner.position < len(inner.data):
            found.append(inner.value(typed=typed))
        return found


def shortstr(text: str | bytes) -> bytes:
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return bytes([len(raw)]) + raw


def longstr(text: str | bytes) -> bytes:
    raw = text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
    return struct.pack(">I", len(raw)) + raw


def table(entries: Mapping[str, Any]) -> bytes:
    return longstr(b"".join(shortstr(key) + field_value(value) for key, value in entries.items()))


def field_value(value: Any) -> bytes:
    if isinstance(value, Typed):
        return value.tag.encode() + _typed_payload(value.tag, value.value)
    tag = _usual_tag(value)
    return tag.encode() + _typed_payload(tag, value)


def _usual_tag(value: Any) -> str:
    if isinstance(value, bool):
        return "t"
    if isinstance(value, int):
        return "I" if -(2**31) <= value < 2**31 else "l"
    kinds = ((str, "S"), (bytes, "x"), (float, "d"), (datetime, "T"), (Decimal, "D"), (dict, "F"), (list, "A"))
    for kind, tag in kinds:
        if isinstance(value, kind):
            return tag
    assert value is None, f"no field type for {value!r}"
    return "V"


def _typed_payload(tag: str, value: Any) -> bytes:
    if tag == "T" and isinstance(value, datetime):
        return struct.pack(">Q", int(value.timestamp()))
    if tag in _FIXED:
        return struct.pack(">" + _FIXED[tag], value)
    match tag:
        case "t":
            return b"\x01" if value else b"\x00"
        case "S" | "x":
            return longstr(value)
        case "D":
            digits = Decimal(value).as_tuple()
            assert isinstance(digits.exponent, int)
            return struct.pack(">Bi", -digits.exponent, int(Decimal(value).scaleb(-digits.exponent)))
        case "F":
            return table(value)
        case "A":
            return longstr(b"".join(field_value(item) for item in value))
        case "V":
            return b""
        case _:
            raise AssertionError(f"unknown field type {tag!r}")


PROPERTIES = (
    ("content_type", "s"),
    ("content_encoding", "s"),
    ("headers", "F"),
    ("delivery_mode", "B"),
    ("priority", "B"),
    ("correlation_id", "s"),
    ("reply_to", "s"),
    ("expiration", "s"),
    ("message_id", "s"),
    ("timestamp", "Q"),
    ("type", "s"),
    ("user_id", "s"),
    ("app_id", "s"),
    ("cluster_id", "s"),
)


def content_header(body_size: int, properties: Mapping[str, Any], class_id: int = 60) -> bytes:
    """Returns the payload of a content header frame."""
    unknown = set(properties) - {name for name, _ in PROPERTIES}
    assert not unknown, f"no such properties: {unknown}"
    flags = 0
    packed = b""
    for place, (name, kind) in enumerate(PROPERTIES):
        if properties.get(name) is not None:
            flags |= 1 << (15 - place)
            packed += argument(kind, properties[name])
    return struct.pack(">HHQH", class_id, 0, body_size, flags) + packed


def parse_content_header(payload: bytes, *, typed: bool = False) -> tuple[int, dict[str, Any]]:
    """Returns the body size and the properties that are present."""
    reader = Reader(payload)
    class_id, weight, body_size, flags = (reader.number(code) for code in "HHQH")
    assert (class_id, weight) == (60, 0)
    found: dict[str, Any] = {}
    for place, (name, kind) in enumerate(PROPERTIES):
        if flags & (1 << (15 - place)):
            found[name] = reader.table(typed=typed) if kind == "F" else parse_argument(reader, kind)
    assert reader.position == len(payload), "bytes left over in a content header"
    return body_size, found


def argument(kind: str, value: Any) -> bytes:
    """Encodes one method argument that is not a bit."""
    if kind in "BHIQ":
        if isinstance(value, datetime):
            value = int(value.timestamp())
        return struct.pack(">" + kind, value)
    if kind == "F":
        return value if isinstance(value, bytes) else table(value)
    return shortstr(value) if kind == "s" else longstr(value)


def parse_argument(reader: Reader, kind: str) -> Any:
    if kind in "BHIQ":
        return reader.number(kind)
    if kind == "F":
        return reader.table()
    return reader.shortstr() if kind == "s" else reader.longstr()
