"""Arrow batches as AMQP publishes: for each row the method, header and body frames of one message, on channel 1.

The common parts of rows are encoded once and cached, within bounds; a row costs a few dictionary look-ups and the copy
of its body. A row that AMQP cannot represent raises `BadRow`, which names the value and not the row: Spark has no row
numbers.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, repeat
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pandomq.fieldtable import encode_table
from pandomq.limits import FRAME_BYTES_MAX, FRAME_OVERHEAD_BYTES, SHORT_STRING_BYTES_MAX

PART_BYTES: Final = 1 << 20
"""A part is sent as soon as it has this size: larger ones would not stay in the processors' caches."""
PART_BYTES_MAX: Final = 8 << 20
"""No part is larger, and so no message."""
REMEMBERED_MAX: Final = 8192
"""Different routing keys, and different descriptions, that are cached."""

Pairs = tuple[tuple[str, Any], ...]
"""The entries of a row's map."""

_FRAME_END: Final = b"\xce"
_BODY_BYTES_MAX: Final = FRAME_BYTES_MAX - FRAME_OVERHEAD_BYTES
_FRAME: Final = struct.Struct(">BHI")
_PUBLISH: Final = struct.Struct(">HHH")
_CONTENT: Final = struct.Struct(">HHQ")
_METHOD_FRAME, _HEADER_FRAME, _BODY_FRAME = 1, 2, 3
_CHANNEL: Final = 1
_BASIC, _BASIC_PUBLISH = 60, 40

PROPERTIES: Final = (
    "content_type",
    "content_encoding",
    "headers",
    "delivery_mode",
    "priority",
    "correlation_id",
    "reply_to",
    "expiration",
    "message_id",
    "timestamp",
    "type",
    "user_id",
    "app_id",
    "cluster_id",
)
"""Of class basic, in the order of their flags."""
_PLACES: Final = {name: place for place, name in enumerate(PROPERTIES)}
_OCTETS: Final = {"delivery_mode": 2, "priority": 255}


class BadRow(ValueError):
    """A row that cannot become a message."""


class FrameEncoder:
    """For one exchange; values that a row does not have are as given here."""

    def __init__(self, exchange: str, routing_key: str = "", properties: Pairs = ()) -> None:
        self._routing_key = routing_key
        self._defaults = dict(properties)
        self._plain = describe((), properties)
        exchange_octets = short_string(exchange, "exchange")

        # Separate caches: those of an earlier task may be for another exchange.
        @lru_cache(maxsize=REMEMBERED_MAX)
        def publish(routing_key: str) -> bytes:
            words = exchange_octets + short_string(routing_key, "routing_key") + b"\0"
            return frame(_METHOD_FRAME, _PUBLISH.pack(_BASIC, _BASIC_PUBLISH, 0) + words)

        self._publish = publish
        self._describe = lru_cache(maxsize=REMEMBERED_MAX)(self._described)
        self._head = lru_cache(maxsize=REMEMBERED_MAX)(content_head)

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[bytes]:
        """All rows, in order, as parts of whole messages."""
        pieces: list[bytes] = []
        size = 0
        head, publish = self._head, self._publish
        for batch in batches:
            for routing_key, description, body in self._rows(batch):
                if len(body) > _BODY_BYTES_MAX:
                    message: Sequence[bytes] = self._large(routing_key, description, body)
                    message_size = sum(map(len, message))
                    if size + message_size > PART_BYTES_MAX and pieces:
                        yield b"".join(pieces)
                        pieces, size = [], 0
                    pieces += message
                    size += message_size
                else:
                    start, middle = publish(routing_key), head(len(body), description)
                    end = _FRAME_END if body else b""
                    pieces += (start, middle, body, end)
                    size += len(start) + len(middle) + len(body) + 1
                if size >= PART_BYTES:
                    yield b"".join(pieces)
                    pieces, size = [], 0
        if pieces:
            yield b"".join(pieces)

    def _rows(self, batch: pa.RecordBatch) -> Iterator[tuple[str, bytes, bytes]]:
        names = batch.schema.names
        body = batch.column("body")
        if body.null_count:
            raise BadRow("a body is null: replace it by an empty one, or filter such rows out")
        bodies = body.cast(pa.binary()).to_pylist()
        keys: Iterable[str] = repeat(self._routing_key)
        if "routing_key" in names:
            keys = pc.fill_null(batch.column("routing_key"), self._routing_key).to_pylist()
        if "headers" not in names and "properties" not in names:
            return zip(keys, repeat(self._plain), bodies, strict=False)
        headers = pairs_of(batch.column("headers")) if "headers" in names else repeat(())
        properties = pairs_of(batch.column("properties")) if "properties" in names else repeat(())
        return zip(keys, map(self._describe, headers, properties), bodies, strict=False)

    def _described(self, headers: Pairs, properties: Pairs) -> bytes:
        if not self._defaults:
            return describe(headers, properties)
        return describe(headers, tuple({**self._defaults, **dict(properties)}.items()))

    def _large(self, routing_key: str, description: bytes, body: bytes) -> list[bytes]:
        # A body of several frames.
        message = [self._publish(routing_key), content_header(len(body), description)]
        for start in range(0, len(body), _BODY_BYTES_MAX):
            message.append(frame(_BODY_FRAME, body[start : start + _BODY_BYTES_MAX]))
        size = sum(map(len, message))
        if size > PART_BYTES_MAX:
            raise BadRow(f"a body has {len(body)} bytes: a message with its frames is limited to {PART_BYTES_MAX}")
        return message


def frame(kind: int, payload: bytes) -> bytes:
    return b"".join((_FRAME.pack(kind, _CHANNEL, len(payload)), payload, _FRAME_END))


def content_header(body_size: int, description: bytes) -> bytes:
    payload = _CONTENT.pack(_BASIC, 0, body_size) + description
    if len(payload) > _BODY_BYTES_MAX:
        raise BadRow(
            f"headers and properties have {len(description)} bytes: they are limited to a frame of {FRAME_BYTES_MAX}"
        )
    return frame(_HEADER_FRAME, payload)


def content_head(body_size: int, description: bytes) -> bytes:
    """The header frame, and the bytes before the body if that is one frame."""
    start = _FRAME.pack(_BODY_FRAME, _CHANNEL, body_size) if body_size else b""
    return content_header(body_size, description) + start


def describe(headers: Pairs, properties: Pairs) -> bytes:
    """Flags and properties, as they are in a content header."""
    values = {name: value for name, value in properties if value is not None}
    flags = 0
    encoded: list[tuple[int, bytes]] = []
    for name, value in values.items():
        place = _PLACES.get(name)
        if place is None or name == "headers":
            known = ", ".join(name for name in PROPERTIES if name != "headers")
            raise BadRow(f"property {name!r} does not exist: expected one of {known}; use a header for anything else")
        encoded.append((place, _property(name, value)))
    if headers:
        encoded.append((_PLACES["headers"], _headers(headers)))
    encoded.sort()
    for place, _ in encoded:
        flags |= 1 << (15 - place)
    return b"".join((flags.to_bytes(2, "big"), *(octets for _, octets in encoded)))


def pairs_of(column: pa.MapArray) -> Iterator[Pairs]:
    """Each row's entries; null has none."""
    keys, values = column.keys.to_pylist(), column.items.to_pylist()
    entries = list(zip(keys, values, strict=True))
    rows: Iterator[Pairs] = (tuple(entries[start:end]) for start, end in pairwise(column.offsets.to_pylist()))
    if column.null_count == 0:
        return rows
    return (row if valid else () for row, valid in zip(rows, column.is_valid().to_pylist(), strict=True))


def short_string(text: str, what: str) -> bytes:
    octets = text.encode()
    if len(octets) > SHORT_STRING_BYTES_MAX:
        raise BadRow(f"{what} has {len(octets)} bytes: at most {SHORT_STRING_BYTES_MAX} are allowed")
    return bytes((len(octets),)) + octets


def _property(name: str, value: str) -> bytes:
    if name in _OCTETS:
        if not value.isdecimal() or int(value) > _OCTETS[name]:
            raise BadRow(f"{name} is {value!r}: expected a number of at most {_OCTETS[name]}")
        return bytes((int(value),))
    if name == "timestamp":
        if not value.isdecimal() or int(value) >= 1 << 64:
            raise BadRow(f"timestamp is {value!r}: expected seconds since 1970")
        return int(value).to_bytes(8, "big")
    return short_string(value, name)


def _headers(headers: Pairs) -> bytes:
    try:
        return encode_table(dict(headers))
    except (ValueError, struct.error) as error:
        raise BadRow(f"headers {sorted(name for name, _ in headers)}: {error}") from None
