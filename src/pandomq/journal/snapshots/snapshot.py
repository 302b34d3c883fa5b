"""The form of a snapshot file, with functions that read and check one.

    sector 0     head: the store's identity, index, term and chain
    pieces       kind u16, zero u16, length u32, number u32, checksum u32, data

The owner's pieces have kinds of its own below OWN_KINDS. Three are the journal's: the points of the chain; the places
of all pages that the owner's pieces refer to; and the end, without which a snapshot is not one. The first two come
before all others. A file is called a snapshot only after it was read back whole.
"""

import struct
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from pandomq.ids import ClusterId
from pandomq.journal.chain import ChainPoints
from pandomq.journal.effects import FileName
from pandomq.journal.faults import foreign_cluster, unknown_version
from pandomq.journal.limits import PLACES_PER_PIECE, SECTOR_BYTES, SNAPSHOT_PIECE_BYTES_MAX
from pandomq.journal.paging.page_file import PLACE, PagePlace
from pandomq.journal.segments.layout import Identity, decode_sector, encode_sector
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.work import Work
from pandomq.kernel import crc32

VERSION: Final = 1
MAGIC: Final = b"PANDOSNP"
HEAD: Final = struct.Struct("<8sI4x16sQQQB")
PIECE: Final = struct.Struct("<HHIII")
END: Final = struct.Struct("<IQ")

OWN_KINDS: Final = 0xFF00
KIND_PAGES: Final = 0xFFFD
KIND_CHAIN: Final = 0xFFFE
KIND_END: Final = 0xFFFF


class SnapshotHead(NamedTuple):
    file: FileName
    cluster_id: ClusterId
    last_index: int
    term: int
    chain: int


class BadSnapshot(Exception):
    """The file is not a complete snapshot; the message says where it is wrong."""

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(offset, text)
        self.offset = offset
        self.text = text


def encode_head(identity: Identity, index: int, term: int, chain: int) -> bytes:
    name = identity.node_name.encode()
    cluster = uuid.UUID(identity.cluster_id).bytes
    return encode_sector(HEAD.pack(MAGIC, VERSION, cluster, index, term, chain, len(name)) + name)


class SnapshotBase(NamedTuple):
    """The part of a snapshot that the journal itself adds."""

    points: ChainPoints
    places: list[PagePlace]
    """Pages that the owner's pieces refer to."""


def encode_places(places: Sequence[PagePlace]) -> Iterator[bytes]:
    """The data of as many pieces as are needed."""
    for first in range(0, len(places), PLACES_PER_PIECE):
        yield b"".join(PLACE.pack(*place) for place in places[first : first + PLACES_PER_PIECE])


def encode_piece(kind: int, number: int, data: bytes) -> tuple[bytes, bytes]:
    return PIECE.pack(kind, 0, len(data), number, _piece_sum(kind, number, data)), data


def encode_end(number: int, position: int) -> tuple[bytes, bytes]:
    """The last piece: the number of pieces before it, and its offset."""
    return encode_piece(KIND_END, number, END.pack(number, position))


def _piece_sum(kind: int, number: int, data: bytes) -> int:
    return crc32(data, crc32(PIECE.pack(kind, 0, len(data), number, 0)))


def read_head(file: FileName, window: ReadWindow, cluster_id: ClusterId | None) -> Work[SnapshotHead]:
    """Raises BadSnapshot; VersionFault or ForeignFault for a good head that this broker must not read."""
    content = decode_sector((yield from window.look(0, SECTOR_BYTES)))
    if content is None:
        raise BadSnapshot(0, "the head is damaged")
    magic, version, cluster, index, term, chain, _ = HEAD.unpack_from(content)
    if magic != MAGIC:
        raise BadSnapshot(0, "it is not a snapshot")
    if version > VERSION:
        raise unknown_version(file, version, VERSION)
    found = ClusterId(str(uuid.UUID(bytes=cluster)))
    if cluster_id is not None and found != cluster_id:
        raise foreign_cluster(file, found, cluster_id)
    return SnapshotHead(file, found, index, term, chain)


def read_pieces(window: ReadWindow, take: Callable[[int, bytes], bool]) -> Work[None]:
    """Calls `take` with each piece, in order, until it returns False. Raises BadSnapshot unless all are good and the
    end is there."""
    position, number = SECTOR_BYTES, 0
    while True:
        head = yield from window.look(position, PIECE.size)
        if len(head) < PIECE.size:
            raise BadSnapshot(position, "it ends too early")
        kind, zero, length, found, checksum = PIECE.unpack(head)
        if zero or found != number or length > SNAPSHOT_PIECE_BYTES_MAX:
            raise BadSnapshot(position, "a piece's head is damaged")
        data = yield from window.look(position + PIECE.size, length)
        if len(data) < length or _piece_sum(kind, number, data) != checksum:
            raise BadSnapshot(position, "a piece is damaged")
        if kind == KIND_END:
            if data != END.pack(number, position):
                raise BadSnapshot(position, "pieces are missing")
            return
        if not take(kind, data):
            return
        position += PIECE.size + length
        number += 1


def check(window: ReadWindow, cluster_id: ClusterId | None, head: SnapshotHead) -> Work[SnapshotBase]:
    """Reads all of it. Raises BadSnapshot."""
    found = yield from read_head(head.file, window, cluster_id)
    if found != head:
        raise BadSnapshot(0, "the head differs from the one that was written")
    return (yield from _read_foundation(window, whole=True))


def read_foundation(window: ReadWindow) -> Work[SnapshotBase]:
    """Reads no further than necessary. Raises BadSnapshot."""
    return (yield from _read_foundation(window, whole=False))


def _read_foundation(window: ReadWindow, *, whole: bool) -> Work[SnapshotBase]:
    points: list[ChainPoints] = []
    places: list[PagePlace] = []

    def take(kind: int, data: bytes) -> bool:
        if kind == KIND_CHAIN:
            points.append(ChainPoints.decode(data))
        elif kind == KIND_PAGES:
            places.extend(PagePlace(*place) for place in PLACE.iter_unpack(data))
        return whole or kind >= OWN_KINDS

    yield from read_pieces(window, take)
    if len(points) != 1:
        raise BadSnapshot(SECTOR_BYTES, "the chain's points are missing")
    return SnapshotBase(points[0], places)
