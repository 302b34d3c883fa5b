"""The content header: a message's size and its properties.

A message keeps its header as the encoded payload of the header frame, and is rarely decoded. So besides full decoding
there are readers of a single property, and rewriting in place, which leaves all other bytes as the publisher wrote
them. Malformed input is a syntax error of the peer.
"""

import struct
from typing import Final

import msgspec

from pandomq.errors import syntax_error
from pandomq.fieldtable import FieldTable, Timestamp, decode_table, encode_table
from pandomq.limits import SHORT_STRING_BYTES_MAX

BASIC_CLASS_ID: Final = 60

PERSISTENT: Final = 2
"""The delivery mode of messages that survive a restart."""


class Properties(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Properties of class basic, in the order of their flags; an absent one is None."""

    content_type: str | None = None
    content_encoding: str | None = None
    headers: FieldTable | None = None
    delivery_mode: int | None = None
    priority: int | None = None
    correlation_id: str | None = None
    reply_to: str | None = None
    expiration: str | None = None
    message_id: str | None = None
    timestamp: int | None = None
    type: str | None = None
    user_id: str | None = None
    app_id: str | None = None
    cluster_id: str | None = None


_NAMES: Final = Properties.__struct_fields__
_FLAGS: Final = {name: 1 << (15 - place) for place, name in enumerate(_NAMES)}
_HEADERS: Final = _FLAGS["headers"]
_EXPIRATION: Final = _FLAGS["expiration"]
_TIMESTAMP: Final = _FLAGS["timestamp"]
_OCTETS: Final = _FLAGS["delivery_mode"] | _FLAGS["priority"]
_IN_ORDER: Final = tuple(zip(_NAMES, _FLAGS.values(), strict=True))
# The lowest bit would announce a second word of flags, which class basic does not have.
_MORE_FLAGS: Final = 1

_START: Final = struct.Struct(">HHQH")
_FLAGS_OFFSET: Final = 12
_UINT32: Final = struct.Struct(">I")
_UINT64: Final = struct.Struct(">Q")


def encode_header(body_size: int, properties: Properties) -> bytes:
    """The payload of a content header frame."""
    flags = 0
    parts: list[bytes] = [b""]
    for name, flag in _IN_ORDER:
        value = getattr(properties, name)
        if value is None:
            continue
        flags |= flag
        if flag & _HEADERS:
            parts.append(encode_table(value))
        elif flag & _OCTETS:
            parts.append(bytes((value,)))
        elif flag & _TIMESTAMP:
            parts.append(_UINT64.pack(value))
        else:
            parts.append(_encode_short_string(value))
    parts[0] = _START.pack(BASIC_CLASS_ID, 0, body_size, flags)
    return b"".join(parts)


def decode_header(payload: bytes) -> tuple[int, Properties]:
    """The body size and all properties."""
    flags = _checked_flags(payload)
    values: dict[str, object] = {}
    offset = _START.size
    for name, flag in _IN_ORDER:
        if flags & flag:
            end = _value_end(payload, offset, flag)
            values[name] = _value(payload, offset, end, flag)
            offset = end
    if offset != len(payload):
        raise syntax_error("content header has octets after its properties")
    return body_size(payload), Properties(**values)  # type: ignore[arg-type]


def body_size(payload: bytes) -> int:
    """The size in a header."""
    size: int = _UINT64.unpack_from(payload, 4)[0]
    return size


def read_property(payload: bytes, name: str) -> str | int | FieldTable | None:
    """One property of an encoded header, None if it is absent."""
    flag = _FLAGS[name]
    flags = _checked_flags(payload)
    if not flags & flag:
        return None
    offset = _offset_of(payload, flags, flag)
    return _value(payload, offset, _value_end(payload, offset, flag), flag)


def read_headers(payload: bytes) -> FieldTable:
    """The headers of an encoded header; an empty table if there are none."""
    flags = _checked_flags(payload)
    if not flags & _HEADERS:
        return {}
    return decode_table(payload, _offset_of(payload, flags, _HEADERS))[0]


def replace_headers(payload: bytes, headers: FieldTable | None, *, drop_expiration: bool = False) -> bytes:
    """Returns the content header with other headers; None removes them.

    A dead letter also loses its expiration, so that it does not expire again in the dead-letter queue.
    """
    flags = _checked_flags(payload)
    offset = _offset_of(payload, flags, _HEADERS)
    rest = _value_end(payload, offset, _HEADERS) if flags & _HEADERS else offset
    new_flags = flags & ~_HEADERS if headers is None else flags | _HEADERS
    table = b"" if headers is None else encode_table(headers)
    if drop_expiration and flags & _EXPIRATION:
        expiration = _offset_of(payload, flags, _EXPIRATION)
        after = _value_end(payload, expiration, _EXPIRATION)
        tail = payload[rest:expiration] + payload[after:]
        new_flags &= ~_EXPIRATION
    else:
        tail = payload[rest:]
    return b"".join((payload[:_FLAGS_OFFSET], new_flags.to_bytes(2, "big"), payload[_START.size : offset], table, tail))


def _encode_short_string(value: str) -> bytes:
    octets = value.encode("utf-8", "surrogateescape")
    if len(octets) > SHORT_STRING_BYTES_MAX:
        raise ValueError(f"short string of {len(octets)} bytes")
    return bytes((len(octets),)) + octets


def _checked_flags(payload: bytes) -> int:
    if len(payload) < _START.size:
        raise syntax_error("content header ends too early")
    flags = payload[_FLAGS_OFFSET] << 8 | payload[_FLAGS_OFFSET + 1]
    if flags & _MORE_FLAGS:
        raise syntax_error("content header has more flags than class basic knows")
    return flags


def _offset_of(payload: bytes, flags: int, wanted: int) -> int:
    # The position of the property, or where it would be.
    offset = _START.size
    for _, flag in _IN_ORDER:
        if flag == wanted:
            break
        if flags & flag:
            offset = _value_end(payload, offset, flag)
    return offset


def _value_end(payload: bytes, offset: int, flag: int) -> int:
    if flag & _HEADERS:
        size = 4 + _UINT32.unpack_from(payload, offset)[0] if offset + 4 <= len(payload) else 4
    elif flag & _OCTETS:
        size = 1
    elif flag & _TIMESTAMP:
        size = 8
    else:
        size = 1 + payload[offset] if offset < len(payload) else 1
    end: int = offset + size
    if end > len(payload):
        raise syntax_error("content header ends too early")
    return end


def _value(payload: bytes, offset: int, end: int, flag: int) -> str | int | FieldTable:
    if flag & _HEADERS:
        return decode_table(payload, offset)[0]
    if flag & _OCTETS:
        return payload[offset]
    if flag & _TIMESTAMP:
        return Timestamp(_UINT64.unpack_from(payload, offset)[0])
    return payload[offset + 1 : end].decode("utf-8", "surrogateescape")
