"""The form of a log entry: the durable changes of a batch.

    entry     version u8, now_ms u64, record count u32, records
    ENQUEUE   1 u8, queue count u16, (queue id u64, sequence u64) per queue, routing length u32, header length u32,
              body length u32, routing, header, body
    DEQUEUE   2 u8, queue id u64, first sequence u64, count u32
    COMMAND   3 u8, length u32, bytes

All numbers are little-endian. Within an entry the ENQUEUE of a message comes before its DEQUEUE, and a COMMAND after
all records of what happened before it. A DEQUEUE may name messages that are not there. The journal adds checksums.
"""

import struct
from collections.abc import Iterator
from typing import Final

import msgspec

from pandomq.kernel.constants import RECORD_COMMAND, RECORD_DEQUEUE, RECORD_ENQUEUE

VERSION: Final = 1
QUEUES_PER_RECORD_MAX: Final = 0xFFFF
"""A message for more queues gets several records."""

ENTRY_START: Final = struct.Struct("<BQI")
ENQUEUE_START: Final = struct.Struct("<BH")
PLACE: Final = struct.Struct("<QQ")
CONTENT_SIZES: Final = struct.Struct("<III")
DEQUEUE: Final = struct.Struct("<BQQI")
COMMAND_START: Final = struct.Struct("<BI")


class BadEntry(ValueError):
    """The bytes are not a log entry of a known version."""


class EnqueueRecord(msgspec.Struct, frozen=True, gc=False):
    """A message entered queues under these sequence numbers."""

    places: tuple[tuple[int, int], ...]
    routing: bytes
    header: bytes
    body: bytes


class DequeueRecord(msgspec.Struct, frozen=True, gc=False):
    """`count` messages left a queue, for any reason."""

    queue_id: int
    sequence_first: int
    count: int


class CommandRecord(msgspec.Struct, frozen=True, gc=False):
    """A change of the broker's configuration; the broker defines the bytes."""

    command: bytes


Record = EnqueueRecord | DequeueRecord | CommandRecord


class DecodedEntry(msgspec.Struct, frozen=True, gc=False):
    """One decoded log entry."""

    now_ms: int
    records: tuple[Record, ...]


def encode_enqueue(places: list[tuple[int, int]], routing: bytes, header: bytes, body: bytes) -> bytes:
    """Places are pairs of queue id and sequence."""
    return b"".join(
        (
            ENQUEUE_START.pack(RECORD_ENQUEUE, len(places)),
            *(PLACE.pack(queue_id, sequence) for queue_id, sequence in places),
            CONTENT_SIZES.pack(len(routing), len(header), len(body)),
            routing,
            header,
            body,
        )
    )


def encode_dequeue(queue_id: int, sequence_first: int, count: int) -> bytes:
    return DEQUEUE.pack(RECORD_DEQUEUE, queue_id, sequence_first, count)


def encode_command(command: bytes) -> bytes:
    return COMMAND_START.pack(RECORD_COMMAND, len(command)) + command


def decode_entry(entry: bytes) -> DecodedEntry:
    """Raises BadEntry for anything but a whole entry of a known version."""
    try:
        version, now_ms, count = ENTRY_START.unpack_from(entry)
        if version != VERSION:
            raise BadEntry(f"version {version}")
        records = tuple(_decode_records(entry, count))
    except (struct.error, IndexError) as error:
        raise BadEntry("ends too early") from error
    return DecodedEntry(now_ms, records)


def _decode_records(entry: bytes, count: int) -> Iterator[Record]:
    offset = ENTRY_START.size
    for _ in range(count):
        kind = entry[offset]
        record: Record
        if kind == RECORD_ENQUEUE:
            record, offset = _decode_enqueue(entry, offset)
        elif kind == RECORD_DEQUEUE:
            _, queue_id, sequence_first, gone = DEQUEUE.unpack_from(entry, offset)
            record, offset = DequeueRecord(queue_id, sequence_first, gone), offset + DEQUEUE.size
        elif kind == RECORD_COMMAND:
            _, length = COMMAND_START.unpack_from(entry, offset)
            start = offset + COMMAND_START.size
            record, offset = CommandRecord(_slice(entry, start, start + length)), start + length
        else:
            raise BadEntry(f"record kind {kind}")
        yield record
    if offset != len(entry):
        raise BadEntry("goes on after its last record")


def _decode_enqueue(entry: bytes, offset: int) -> tuple[EnqueueRecord, int]:
    _, queue_count = ENQUEUE_START.unpack_from(entry, offset)
    offset += ENQUEUE_START.size
    places = tuple(PLACE.unpack_from(entry, offset + PLACE.size * place) for place in range(queue_count))
    offset += PLACE.size * queue_count
    routing_size, header_size, body_size = CONTENT_SIZES.unpack_from(entry, offset)
    offset += CONTENT_SIZES.size
    header_offset = offset + routing_size
    body_offset = header_offset + header_size
    end = body_offset + body_size
    routing = _slice(entry, offset, header_offset)
    header = _slice(entry, header_offset, body_offset)
    return EnqueueRecord(places, routing, header, _slice(entry, body_offset, end)), end


def _slice(entry: bytes, start: int, end: int) -> bytes:
    if end > len(entry):
        raise BadEntry("ends too early")
    return entry[start:end]
