"""The form of a segment file. docs/journal-format.md explains the reasons.

    sector 0      identity: what the file is, written and synced before it is used
    sector 1      opening: the first index, and the term and chain before it; written with the first entries
    sectors 2, 3  marks, written in turn: up to which index the log is known to be synced
    sector 4      seal: what the finished segment holds, and the checksum of its table
    page 1 …      the table: one slot for each entry, in order
    page n …      the body: entries; each group that was written for one sync begins at a sector

All numbers are little-endian. A sector of the head ends with a checksum. Slots and head sectors but the first are
bound to their file by a seed made from cluster id and segment number, so that a sector of another file is not accepted.
"""

import struct
import uuid
from itertools import repeat
from typing import Final, NamedTuple

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.limits import NODE_NAME_BYTES_MAX, PAGE_BYTES, SECTOR_BYTES
from pandomq.kernel import crc32

VERSION: Final = 1
SEGMENT_MAGIC: Final = b"PANDOSEG"

IDENTITY_SECTOR: Final = 0
OPENING_SECTOR: Final = 1
MARK_SECTORS: Final = (2, 3)
SEAL_SECTOR: Final = 4
HEAD_BYTES: Final = 5 * SECTOR_BYTES
TABLE_OFFSET: Final = PAGE_BYTES

BLANK: Final = bytes(SECTOR_BYTES)
PADDING: Final = b"\xff" * SECTOR_BYTES
"""Fills a group up to the next sector. Not zeros: a sector that a crash has lost is zeros, see `blank_sectors`."""

IDENTITY: Final = struct.Struct("<8sIIQ16sB")
OPENING: Final = struct.Struct("<QQQ")
MARK: Final = struct.Struct("<QQ")
SEAL: Final = struct.Struct("<QQQQII")
SECTOR_SUM: Final = struct.Struct("<I")

# Begins and ends with a byte that is not zero, so a sector with a part of it is never all zeros.
ENTRY_HEAD: Final = struct.Struct("<HHIQQII")
ENTRY_BEGIN: Final = 0xB10C
ENTRY_END: Final = 0xE27D5EA1
ENTRY_HEAD_BYTES: Final = ENTRY_HEAD.size

SLOT: Final = struct.Struct("<QIIIIII")
SLOT_CONTENT: Final = struct.Struct("<QIIIII")
SLOT_BYTES: Final = SLOT.size
SLOT_BLANK: Final = bytes(SLOT_BYTES)
LAG_MAX: Final = 2**32 - 1


class Identity(NamedTuple):
    """The store that the file belongs to."""

    cluster_id: ClusterId
    node_name: NodeName


class SegmentIdentity(NamedTuple):
    version: int
    slot_count: int
    number: int
    cluster_id: ClusterId
    node_name: NodeName


class SegmentStart(NamedTuple):
    first_index: int
    term_before: int
    chain_before: int


class SyncMark(NamedTuple):
    counter: int
    synced_index: int


class Seal(NamedTuple):
    last_index: int
    end: int
    term_last: int
    chain_after: int
    table_sum: int
    term_count: int
    """Number of different terms of the entries: nearly always 1, and then the terms need not be read."""


class Slot(NamedTuple):
    """One entry in the table; its index follows from the slot's place."""

    term: int
    checksum: int
    position: int
    length: int
    blank: int
    """Sectors of the payload that were all zeros when they were written."""
    lag: int
    """How far behind this entry the synced part of the log was when the slot was made."""


def encode_sector(content: bytes, seed: int = 0) -> bytes:
    padded = content.ljust(SECTOR_BYTES - SECTOR_SUM.size, b"\0")
    return padded + SECTOR_SUM.pack(crc32(padded, seed))


def decode_sector(sector: bytes, seed: int = 0) -> bytes | None:
    """The content, or None if the checksum is not right."""
    if len(sector) != SECTOR_BYTES or sector == BLANK:
        return None
    content, tail = sector[: -SECTOR_SUM.size], sector[-SECTOR_SUM.size :]
    return content if SECTOR_SUM.pack(crc32(content, seed)) == tail else None


def file_seed(cluster_id: ClusterId, number: int) -> int:
    return crc32(uuid.UUID(cluster_id).bytes + number.to_bytes(8, "little"))


def encode_identity(identity: Identity, number: int, slot_count: int) -> bytes:
    name = identity.node_name.encode()
    assert len(name) <= NODE_NAME_BYTES_MAX
    cluster = uuid.UUID(identity.cluster_id).bytes
    return encode_sector(IDENTITY.pack(SEGMENT_MAGIC, VERSION, slot_count, number, cluster, len(name)) + name)


def decode_identity(sector: bytes) -> SegmentIdentity | None:
    content = decode_sector(sector)
    if content is None:
        return None
    magic, version, slot_count, number, cluster, name_bytes = IDENTITY.unpack_from(content)
    if magic != SEGMENT_MAGIC:
        return None
    name = content[IDENTITY.size : IDENTITY.size + name_bytes].decode()
    return SegmentIdentity(version, slot_count, number, ClusterId(str(uuid.UUID(bytes=cluster))), NodeName(name))


def decode_opening(sector: bytes, seed: int) -> SegmentStart | None:
    content = decode_sector(sector, seed)
    return None if content is None else SegmentStart(*OPENING.unpack_from(content))


def decode_mark(sector: bytes, seed: int) -> SyncMark | None:
    content = decode_sector(sector, seed)
    return None if content is None else SyncMark(*MARK.unpack_from(content))


def decode_seal(sector: bytes, seed: int) -> Seal | None:
    content = decode_sector(sector, seed)
    return None if content is None else Seal(*SEAL.unpack_from(content))


def slot_sum(content: bytes | memoryview, seed: int, place: int) -> int:
    return crc32(content, seed ^ place)


def encode_slot(slot: Slot, seed: int, place: int) -> bytes:
    content = SLOT_CONTENT.pack(*slot)
    return content + SECTOR_SUM.pack(slot_sum(content, seed, place))


def body_offset(slot_count: int) -> int:
    return TABLE_OFFSET + align(slot_count * SLOT_BYTES, PAGE_BYTES)


def align(position: int, unit: int = SECTOR_BYTES) -> int:
    return -(-position // unit) * unit


def blank_sectors(data: bytes | memoryview, position: int) -> int:
    """Number of whole sectors of zeros in these bytes, which begin at this position of a file.

    A disk writes a sector or leaves the old content: zeros in new parts of a file. So an entry that a crash has torn
    has more such sectors than when it was written, and one with changed bits does not.
    """
    octets, first = bytes(data), align(position) - position
    places = range(first, len(octets) - SECTOR_BYTES + 1, SECTOR_BYTES)
    # Not a Python loop: this runs for every entry with a zero in the wrong place.
    return sum(map(octets.startswith, repeat(BLANK), places))
