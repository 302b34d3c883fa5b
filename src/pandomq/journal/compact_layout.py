"""The form of a compacted segment: those byte ranges of a run of entries that were live when it was made.

    sector 0      head: whose, which indexes, the chain before and after them, where the directory is
    page 1 …      the bytes of the ranges
    directory     columns: index u64, payload offset u32, length u32, position u32, checksum u32; then a second copy
    last sector   the head once more

A range keeps its name, (index, offset), so whoever knows where a message was still finds it.
"""

import struct
import sys
import uuid
from array import array
from typing import Final, NamedTuple
from zlib import crc32

from pandomq.ids import ClusterId
from pandomq.journal.effects import FileName
from pandomq.journal.faults import foreign_cluster, unknown_version
from pandomq.journal.layout import Identity, decode_sector, encode_sector
from pandomq.journal.limits import PAGE_BYTES, SECTOR_BYTES
from pandomq.journal.segment import CompactSegment, Ranges
from pandomq.journal.work import Work, read

VERSION: Final = 1
MAGIC: Final = b"PANDOCMP"
HEAD: Final = struct.Struct("<8sII16sQQQQQQIB")
BODY_OFFSET: Final = PAGE_BYTES
DIRECTORY_ROW_BYTES: Final = 24


class CompactHead(NamedTuple):
    number: int
    first_index: int
    last_index: int
    chain_before: int
    chain_after: int
    range_count: int
    directory_offset: int
    directory_sum: int


class CompactBad(Exception):
    """The file cannot be read; says where."""

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(offset, text)
        self.offset = offset
        self.text = text


def encode_head(identity: Identity, head: CompactHead) -> bytes:
    name = identity.node_name.encode()
    content = HEAD.pack(
        MAGIC,
        VERSION,
        head.range_count,
        uuid.UUID(identity.cluster_id).bytes,
        head.number,
        head.first_index,
        head.last_index,
        head.chain_before,
        head.chain_after,
        head.directory_offset,
        head.directory_sum,
        len(name),
    )
    return encode_sector(content + name)


def decode_head(file: FileName, sector: bytes, cluster_id: ClusterId | None) -> CompactHead | None:
    """None if it is damaged; raises VersionFault or ForeignFault if it is not ours to read."""
    content = decode_sector(sector)
    if content is None:
        return None
    magic, version, count, cluster, number, first, last, before, after, offset, checksum, _ = HEAD.unpack_from(content)
    if magic != MAGIC:
        return None
    if version > VERSION:
        raise unknown_version(file, version, VERSION)
    found = ClusterId(str(uuid.UUID(bytes=cluster)))
    if cluster_id is not None and found != cluster_id:
        raise foreign_cluster(file, found, cluster_id)
    return CompactHead(number, first, last, before, after, count, offset, checksum)


def encode_directory(ranges: Ranges) -> bytes:
    columns = (ranges.indexes, ranges.offsets, ranges.lengths, ranges.positions, ranges.checksums)
    return b"".join(column.tobytes() for column in columns)


def decode_directory(data: bytes, count: int) -> Ranges:
    ranges = Ranges()
    at = 0
    for column in (ranges.indexes, ranges.offsets, ranges.lengths, ranges.positions, ranges.checksums):
        size_bytes = count * column.itemsize
        column.frombytes(data[at : at + size_bytes])
        at += size_bytes
    return ranges


def load(file: FileName, size_bytes: int, cluster_id: ClusterId | None) -> Work[tuple[CompactSegment, list[str]]]:
    """The segment, and what was wrong with one of the two copies of head and directory. Raises CompactBad if both
    are."""
    flaws: list[str] = []
    head: CompactHead | None = None
    for offset in (0, max(0, size_bytes - SECTOR_BYTES)):
        found = decode_head(file, (yield from read(file, offset, SECTOR_BYTES)), cluster_id)
        if found is None:
            flaws.append(f"the head at offset {offset} is damaged")
        head = head or found
    if head is None:
        raise CompactBad(0, "both copies of the head are damaged")
    length = head.range_count * DIRECTORY_ROW_BYTES
    directory: bytes | None = None
    for offset in (head.directory_offset, head.directory_offset + length):
        data = yield from read(file, offset, length)
        if len(data) != length or crc32(data) != head.directory_sum:
            flaws.append(f"the directory at offset {offset} is damaged")
        else:
            directory = data
    if directory is None:
        raise CompactBad(head.directory_offset, "both copies of the directory are damaged")
    ranges = decode_directory(directory, head.range_count)
    indexes, chains = (head.first_index, head.last_index), (head.chain_before, head.chain_after)
    return CompactSegment(head.number, file, indexes, chains, ranges, size_bytes), flaws


assert sys.byteorder == "little", "columns of numbers are written as they are in memory"
assert array("I").itemsize == 4 and array("Q").itemsize == 8
