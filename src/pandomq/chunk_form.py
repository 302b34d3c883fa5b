"""The bytes of a sealed chunk: messages of a stream, column by column.

    chunk     head, column table, columns
    head      magic "PDMC", version u8, codec u8, 0 u16, message count u32, first and last offset u64, first and last
              time i64, size of the chunk u64, checksum of what follows the head u32, checksum of all before this u32
    table     for each column: its place in the chunk u64, its size u64
    columns   offsets i64, times i64 (microseconds since 1970, UTC); then two each for exchanges, routing keys, headers
              and bodies: where the values end i32 (one more than there are messages, beginning with 0), and their bytes

All numbers are little-endian, each column begins at a multiple of 64, and between columns there are zeros: an Arrow
reader can use the columns without conversion. Headers are the payloads of AMQP content headers. Offsets increase, and
may leave gaps; times never decrease. Checksums are CRC-32.

A chunk may be packed: codec 1, the same head apart from size and checksum, which are those of the packed form; then
size u64 and checksum u32 of the plain one, and all that follows its head as one frame of Zstandard.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple
from zlib import crc32

MAGIC: Final = b"PDMC"
VERSION: Final = 1
CODEC_NONE: Final = 0
CODEC_ZSTD: Final = 1
CODECS: Final = (CODEC_NONE, CODEC_ZSTD)

HEAD: Final = struct.Struct("<4sBBHIQQqqQI")
HEAD_CHECKSUM: Final = struct.Struct("<I")
HEAD_BYTES: Final = HEAD.size + HEAD_CHECKSUM.size
PLAIN: Final = struct.Struct("<QI")
"""In a packed chunk, behind its head: size and checksum of the plain one."""
COLUMN: Final = struct.Struct("<QQ")
ALIGNMENT: Final = 64

_CODEC_PLACE: Final = len(MAGIC) + 1

COLUMNS: Final = 10
OFFSETS, TIMES, EXCHANGE_ENDS, EXCHANGES, KEY_ENDS, KEYS, HEADER_ENDS, HEADERS, BODY_ENDS, BODIES = range(COLUMNS)
TEXT_COLUMNS: Final = ((EXCHANGE_ENDS, EXCHANGES), (KEY_ENDS, KEYS), (HEADER_ENDS, HEADERS), (BODY_ENDS, BODIES))
"""For each message's exchange, routing key, header and body: the column of the ends, and that of the bytes."""

NAME_BYTES_MAX: Final = 255
"""Exchanges and routing keys are short strings."""
COLUMN_BYTES_MAX: Final = 2**31 - 1
"""Ends are 32 bits wide, as in Arrow."""
LONGEST: Final = (NAME_BYTES_MAX, NAME_BYTES_MAX, COLUMN_BYTES_MAX, COLUMN_BYTES_MAX)
"""The maximum sizes of the values of TEXT_COLUMNS."""


class BadChunk(ValueError):
    """The bytes are not a complete chunk of a known version."""


class ChunkHead(NamedTuple):
    rows: int
    first_offset: int
    last_offset: int
    first_time_us: int
    last_time_us: int
    size: int
    """Bytes of the whole chunk."""
    checksum: int


class MessageRow(NamedTuple):
    offset: int
    time_us: int
    exchange: bytes
    routing_key: bytes
    header: bytes
    body: bytes


def encode(rows: Sequence[MessageRow]) -> bytes:
    """The reference definition; the compiled kernel writes the same bytes."""
    columns = [
        struct.pack(f"<{len(rows)}q", *(row.offset for row in rows)),
        struct.pack(f"<{len(rows)}q", *(row.time_us for row in rows)),
    ]
    for values in zip(*((row.exchange, row.routing_key, row.header, row.body) for row in rows), strict=True):
        ends = [0]
        for value in values:
            ends.append(ends[-1] + len(value))
        columns += (struct.pack(f"<{len(ends)}i", *ends), b"".join(values))
    place = aligned(HEAD_BYTES + COLUMN.size * COLUMNS)
    table = b""
    parts = []
    for column in columns:
        table += COLUMN.pack(place, len(column))
        padded = aligned(len(column))
        parts.append(column.ljust(padded, b"\0"))
        place += padded
    rest = table.ljust(aligned(HEAD_BYTES + len(table)) - HEAD_BYTES, b"\0") + b"".join(parts)
    first, last = rows[0], rows[-1]
    head = ChunkHead(len(rows), first.offset, last.offset, first.time_us, last.time_us, place, crc32(rest))
    return encode_head(head) + rest


def encode_head(head: ChunkHead, codec: int = CODEC_NONE) -> bytes:
    packed = HEAD.pack(MAGIC, VERSION, codec, 0, *head)
    return packed + HEAD_CHECKSUM.pack(crc32(packed))


def decode_head(data: bytes | memoryview, codecs: Sequence[int] = (CODEC_NONE,)) -> ChunkHead:
    """Reads the head of a chunk that is in one of these codecs; the data must include the head. Raises BadChunk."""
    if len(data) < HEAD_BYTES:
        raise BadChunk("ends too early")
    magic, version, codec, _, *fields = HEAD.unpack_from(data)
    if magic != MAGIC:
        raise BadChunk("not a chunk")
    if version != VERSION or codec not in codecs:
        raise BadChunk(f"version {version} with codec {codec}")
    if HEAD_CHECKSUM.unpack_from(data, HEAD.size) != (crc32(data[: HEAD.size]),):
        raise BadChunk("its head is damaged")
    return ChunkHead(*fields)


def check(
    data: bytes | memoryview, checksum: Callable[[memoryview], int] = crc32, codecs: Sequence[int] = (CODEC_NONE,)
) -> ChunkHead:
    """The head of a chunk that is complete and undamaged. Raises BadChunk. The caller may pass a faster CRC-32."""
    view = memoryview(data)
    head = decode_head(view, codecs)
    if head.size != len(view):
        raise BadChunk(f"{len(view)} bytes instead of {head.size}")
    if checksum(view[HEAD_BYTES:]) != head.checksum:
        raise BadChunk("it is damaged")
    return head


def decode(data: bytes | memoryview, *, checked: bool = False) -> tuple[ChunkHead, list[memoryview]]:
    """Head and columns. Raises BadChunk unless the chunk is complete and undamaged; with `checked` the checksum is not
    computed again."""
    view = memoryview(data)
    head = decode_head(view) if checked else check(view)
    if not head.rows or head.size < HEAD_BYTES + COLUMN.size * COLUMNS:
        raise BadChunk("ends too early")
    places = [COLUMN.unpack_from(view, HEAD_BYTES + COLUMN.size * number) for number in range(COLUMNS)]
    columns = [view[place : place + size] for place, size in places]
    wanted = [size for _, size in places]
    wanted[OFFSETS] = wanted[TIMES] = 8 * head.rows
    for ends, _ in TEXT_COLUMNS:
        wanted[ends] = 4 * (head.rows + 1)
    if [len(column) for column in columns] != wanted:
        raise BadChunk("a column has the wrong size")
    return head, columns


def is_packed(data: bytes | memoryview) -> bool:
    """For the bytes of a chunk that was checked."""
    return data[_CODEC_PLACE] == CODEC_ZSTD


def pack(data: bytes, compress: Callable[[memoryview], bytes]) -> bytes:
    """A plain chunk, packed; `compress` makes one frame of Zstandard. Raises BadChunk."""
    head = decode_head(data)
    rest = PLAIN.pack(head.size, head.checksum) + compress(memoryview(data)[HEAD_BYTES:])
    packed = head._replace(size=HEAD_BYTES + len(rest), checksum=crc32(rest))
    return encode_head(packed, CODEC_ZSTD) + rest


def unpack(data: bytes | memoryview, decompress: Callable[[memoryview, int], bytes]) -> bytes:
    """The plain chunk, byte for byte, of a packed one that was checked; `decompress` gets the plain size. Raises
    BadChunk, or any exception of `decompress`."""
    view = memoryview(data)
    head = decode_head(view, (CODEC_ZSTD,))
    if len(view) < HEAD_BYTES + PLAIN.size:
        raise BadChunk("ends too early")
    size, checksum = PLAIN.unpack_from(view, HEAD_BYTES)
    if size < HEAD_BYTES:
        raise BadChunk(f"{size} bytes are too few for a chunk")
    rest = decompress(view[HEAD_BYTES + PLAIN.size :], size - HEAD_BYTES)
    if len(rest) != size - HEAD_BYTES:
        raise BadChunk(f"{len(rest) + HEAD_BYTES} bytes instead of {size}")
    return encode_head(head._replace(size=size, checksum=checksum)) + rest


def decode_rows(data: bytes) -> Iterator[MessageRow]:
    """Message by message: slow. Raises BadChunk, also if values overlap, or a name is too long."""
    head, columns = decode(data)
    offsets = columns[OFFSETS].cast("q")
    times = columns[TIMES].cast("q")
    values = [(columns[ends].cast("i"), columns[octets]) for ends, octets in TEXT_COLUMNS]
    for (ends, octets), longest in zip(values, LONGEST, strict=True):
        if ends[0] or ends[-1] != len(octets) or not all(0 <= b - a <= longest for a, b in pairwise(ends)):
            raise BadChunk("a column's ends are not in order")
    for at in range(head.rows):
        yield MessageRow(offsets[at], times[at], *(bytes(octets[ends[at] : ends[at + 1]]) for ends, octets in values))


def aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
