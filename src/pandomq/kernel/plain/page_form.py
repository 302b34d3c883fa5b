"""The bytes of a page, message by message.

    page      version u8, message count u32, first sequence u64, messages
    message   flags u8, sequence u32 (from the first one), body length u32, then what the flags say, then the body:
              2 deadline u64, 4 delivery count u32, 8 term u64, 16 routing length u32 and routing, 32 header length u32
              and header, 64 producer u64 and number u64; 1 says redelivered

All numbers are little-endian. A field without its flag is as in the message before (delivery count, producer and
number: 0), so that a run of similar messages costs little more than its bodies; before the first one the deadline is
NEVER_MS and the term 0.
The caller adds checksums: this module detects bytes of another page, but not damaged bytes.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from pandomq.kernel.constants import NEVER_MS
from pandomq.kernel.plain.message import Message
from pandomq.kernel.plain.ring import RingEntry

if TYPE_CHECKING:
    from pandomq.kernel.plain.page import Page

VERSION: Final = 1
START: Final = struct.Struct("<BIQ")
MESSAGE: Final = struct.Struct("<BII")
U32: Final = struct.Struct("<I")
U64: Final = struct.Struct("<Q")
U64_PAIR: Final = struct.Struct("<QQ")

REDELIVERED: Final = 1
DEADLINE: Final = 2
DELIVERY_COUNT: Final = 4
TERM: Final = 8
ROUTING: Final = 16
HEADER: Final = 32
PRODUCER: Final = 64


def encode(entries: Sequence[RingEntry]) -> bytes:
    first = entries[0].sequence
    parts = [START.pack(VERSION, len(entries), first)]
    term, deadline_ms, routing, header = 0, NEVER_MS, None, None
    for entry in entries:
        message = entry.message
        flags = REDELIVERED if entry.redelivered else 0
        optional = b""
        if entry.deadline_ms != deadline_ms:
            flags |= DEADLINE
            optional += U64.pack(entry.deadline_ms)
        if entry.delivery_count:
            flags |= DELIVERY_COUNT
            optional += U32.pack(entry.delivery_count)
        if entry.term != term:
            flags |= TERM
            optional += U64.pack(entry.term)
        if message.routing != routing:
            flags |= ROUTING
            optional += U32.pack(len(message.routing)) + message.routing
        if message.header != header:
            flags |= HEADER
            optional += U32.pack(len(message.header)) + message.header
        if message.producer:
            flags |= PRODUCER
            optional += U64_PAIR.pack(message.producer, message.number)
        parts += (MESSAGE.pack(flags, entry.sequence - first, len(message.body)), optional, message.body)
        term, deadline_ms, routing, header = entry.term, entry.deadline_ms, message.routing, message.header
    return b"".join(parts)


def decode(page: "Page", data: bytes) -> list[RingEntry]:
    """The messages that are still in the queue. Raises ValueError if these are not the bytes of the page."""
    try:
        version, count, first = START.unpack_from(data)
        if (version, count, first) != (VERSION, page.slots, page.first):
            raise ValueError("not the bytes of this page")
        return [entry for at, entry in enumerate(_decode_all(page, data)) if not page.is_gone(at)]
    except struct.error as error:
        raise ValueError("the bytes of the page end too early") from error


def _decode_all(page: "Page", data: bytes) -> Iterator[RingEntry]:
    at = START.size
    term, deadline_ms, routing, header = 0, NEVER_MS, b"", b""
    for position in range(page.slots):
        flags, offset, size = MESSAGE.unpack_from(data, at)
        if (offset, size) != (page.offset(position), page.size(position)):
            raise ValueError("not the bytes of this page")
        at += MESSAGE.size
        delivery_count = 0
        if flags & DEADLINE:
            (deadline_ms,) = U64.unpack_from(data, at)
            at += U64.size
        if flags & DELIVERY_COUNT:
            (delivery_count,) = U32.unpack_from(data, at)
            at += U32.size
        if flags & TERM:
            (term,) = U64.unpack_from(data, at)
            at += U64.size
        if flags & ROUTING:
            routing, at = _decode_bytes(data, at)
        if flags & HEADER:
            header, at = _decode_bytes(data, at)
        producer = number = 0
        if flags & PRODUCER:
            producer, number = U64_PAIR.unpack_from(data, at)
            at += U64_PAIR.size
        message = Message(routing, header, _slice(data, at, size))
        at += size
        message.producer, message.number = producer, number
        message.kept = page.is_kept(position)
        entry = RingEntry(message, page.first + offset, term, deadline_ms)
        entry.delivery_count = delivery_count
        entry.redelivered = bool(flags & REDELIVERED) or page.suspect
        yield entry
    if at != len(data):
        raise ValueError("the bytes of the page go on after its last message")


def _decode_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    (size,) = U32.unpack_from(data, at)
    return _slice(data, at + U32.size, size), at + U32.size + size


def _slice(data: bytes, start: int, size: int) -> bytes:
    if start + size > len(data):
        raise ValueError("the bytes of the page end too early")
    return data[start : start + size]
