"""Reads just enough of a content header: the properties that the kernel needs for routing, and single headers by name.

Nothing here raises for malformed bytes; they are reported as such. Headers are walked through to their innermost
tables, though only the outermost names count: headers that one client garbled must never reach the decoder of another.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pandomq.kernel.constants import (
    SPECIAL_COPIES,
    SPECIAL_DELAY,
    SPECIAL_EXPIRATION,
    SPECIAL_MALFORMED,
    SPECIAL_PRODUCER,
    SPECIAL_REPLY_TO,
    SPECIAL_USER_ID,
)
from pandomq.limits import EXPIRATION_MS_MAX, FIELD_TABLE_DEPTH_MAX

FLAGS_OFFSET: Final = 12
PROPERTIES_OFFSET: Final = 14
REPLY_TO_PREFIX: Final = b"amq.rabbitmq.reply-to"

CONTENT_TYPE: Final = 1 << 15
CONTENT_ENCODING: Final = 1 << 14
HEADERS: Final = 1 << 13
DELIVERY_MODE: Final = 1 << 12
PRIORITY: Final = 1 << 11
CORRELATION_ID: Final = 1 << 10
REPLY_TO: Final = 1 << 9
EXPIRATION: Final = 1 << 8
MESSAGE_ID: Final = 1 << 7
TIMESTAMP: Final = 1 << 6
TYPE: Final = 1 << 5
USER_ID: Final = 1 << 4
APP_ID: Final = 1 << 3
CLUSTER_ID: Final = 1 << 2
UNASSIGNED: Final = 0b11  # a bit without a property, and the one that announces a second word of flags

SPECIAL_HEADERS: Final = {b"CC": SPECIAL_COPIES, b"BCC": SPECIAL_COPIES, b"x-delay": SPECIAL_DELAY}
NUMBERING: Final = frozenset((b"x-producer", b"x-sequence"))
"""Either of them alone means nothing."""
FIXED_SIZES: Final = {
    kind: size
    for kinds, size in ((b"V", 0), (b"tbB", 1), (b"su", 2), (b"Iif", 4), (b"D", 5), (b"lLdT", 8))
    for kind in kinds
}
SIZED: Final = frozenset(b"SxAF")
NESTING: Final = frozenset(b"AF")
TABLE: Final = ord("F")


class Traits(NamedTuple):
    """The properties that the kernel uses."""

    persistent: bool
    priority: int
    expiration_ms: int
    special: int


MALFORMED: Final = Traits(False, 0, -1, SPECIAL_MALFORMED)


class Malformed(Exception):
    """The bytes cannot be walked through."""


def traits_of(header: bytes) -> Traits:
    try:
        return _read_traits(header)
    except (Malformed, IndexError):
        return MALFORMED


def find_field(header: bytes, name: bytes) -> bytes | None:
    """The raw value, type octet first, of the first entry of that name in the headers."""
    try:
        flags, offset = place_of_headers(header)
        if not flags & HEADERS:
            return None
        for found, start, end in entries(header, offset, len(header)):
            if found == name:
                return header[start:end]
    except (Malformed, IndexError):
        pass
    return None


def place_of_headers(header: bytes) -> tuple[int, int]:
    """The flags, and where the headers begin, or would begin if there were any. Raises Malformed or IndexError."""
    flags = _flags(header)
    offset = PROPERTIES_OFFSET
    for flag in (CONTENT_TYPE, CONTENT_ENCODING):
        if flags & flag:
            offset = _after_short_string(header, offset)
    return flags, offset


def _read_traits(header: bytes) -> Traits:  # noqa: C901 - one branch per property, in their order
    flags, offset = place_of_headers(header)
    persistent, priority, expiration_ms, special = False, 0, -1, 0
    if flags & HEADERS:
        numbering = set()
        for name, start, _ in entries(header, offset, len(header)):
            special |= SPECIAL_HEADERS.get(name, 0)
            if name in NUMBERING:
                numbering.add(name)
            _check_nested(header, start, 1)
        if numbering == NUMBERING:
            special |= SPECIAL_PRODUCER
        offset = _after_long(header, offset, len(header))
    if flags & DELIVERY_MODE:
        persistent = header[offset] == 2
        offset += 1
    if flags & PRIORITY:
        priority = header[offset]
        offset += 1
    if flags & CORRELATION_ID:
        offset = _after_short_string(header, offset)
    if flags & REPLY_TO:
        if header.startswith(REPLY_TO_PREFIX, offset + 1, offset + 1 + header[offset]):
            special |= SPECIAL_REPLY_TO
        offset = _after_short_string(header, offset)
    if flags & EXPIRATION:
        start, offset = offset + 1, _after_short_string(header, offset)
        expiration_ms = _milliseconds(header[start:offset])
        if expiration_ms < 0:
            special |= SPECIAL_EXPIRATION
    if flags & MESSAGE_ID:
        offset = _after_short_string(header, offset)
    if flags & TIMESTAMP:
        offset += 8
    if flags & TYPE:
        offset = _after_short_string(header, offset)
    if flags & USER_ID:
        special |= SPECIAL_USER_ID
        offset = _after_short_string(header, offset)
    for flag in (APP_ID, CLUSTER_ID):
        if flags & flag:
            offset = _after_short_string(header, offset)
    if offset != len(header):
        return MALFORMED
    return Traits(persistent, priority, expiration_ms, special)


def _flags(header: bytes) -> int:
    flags = header[FLAGS_OFFSET] << 8 | header[FLAGS_OFFSET + 1]
    if flags & UNASSIGNED:
        raise Malformed
    return flags


def _milliseconds(text: bytes) -> int:
    # -1 for a value that is not a number in plain digits, or is larger than any time the kernel can represent.
    if not text.isdigit():
        return -1
    value = int(text)
    return value if value <= EXPIRATION_MS_MAX else -1


def _after_short_string(header: bytes, offset: int) -> int:
    end = offset + 1 + header[offset]
    if end > len(header):
        raise Malformed
    return end


def _after_long(header: bytes, offset: int, limit: int) -> int:
    # The end of a value that begins with its length in four octets.
    if offset + 4 > limit:
        raise Malformed
    end = offset + 4 + int.from_bytes(header[offset : offset + 4], "big")
    if end > limit:
        raise Malformed
    return end


def entries(header: bytes, offset: int, limit: int) -> Iterator[tuple[bytes, int, int]]:
    """Name, start and end of the value, for each entry of the table at offset. Raises Malformed."""
    table_end = _after_long(header, offset, limit)
    offset += 4
    while offset < table_end:
        start = offset + 1 + header[offset]
        if start >= table_end:
            raise Malformed
        end = _after_value(header, start, table_end)
        yield header[offset + 1 : start], start, end
        offset = end


def _check_nested(header: bytes, start: int, depth: int) -> None:
    # Looks into the value whose type octet is at start, and which ends within what encloses it.
    kind = header[start]
    if kind not in NESTING:
        return
    if depth >= FIELD_TABLE_DEPTH_MAX:
        raise Malformed
    end = _after_long(header, start + 1, len(header))
    if kind == TABLE:
        for _, inner, _ in entries(header, start + 1, end):
            _check_nested(header, inner, depth + 1)
        return
    inner = start + 5
    while inner < end:
        after = _after_value(header, inner, end)
        _check_nested(header, inner, depth + 1)
        inner = after


def _after_value(header: bytes, start: int, table_end: int) -> int:
    kind = header[start]
    if kind in SIZED:
        return _after_long(header, start + 1, table_end)
    size = FIXED_SIZES.get(kind)
    if size is None or start + 1 + size > table_end:
        raise Malformed
    return start + 1 + size
