"""The form of a snapshot file, and how one is read and checked.

    sector 0     head: whose, at which index, term and chain
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
from pandomq.journal.layout import Identity, decode_sector, encode_sector
from pandomq.journal.limits import PLACES_PER_PIECE, SECTOR_BYTES, SNAPSHOT_PIECE_BYTES_MAX
from pandomq.journal.page_file import PLACE, Place
from pandomq.journal.window import Window
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


class SnapshotBad(Exception):
    """The file is not a whole snapshot; says where it ceases to be one."""

    def __init__(self, offset: int, text: str) -> None:
        super().__init__(offset, text)
        self.offset = offset
        self.text = text


def encode_head(identity: Identity, index: int, term: int, chain: int) -> bytes:
    name = identity.node_name.encode()
    cluster = uuid.UUID(identity.cluster_id).bytes
    return encode_sector(HEAD.pack(MAGIC, VERSION, cluster, index, term, chain, len(name)) + name)


class Foundation(NamedTuple):
    """What the journal itself keeps in a snapshot."""

    points: ChainPoints
    places: list[Place]
    """Pages that the owner's pieces refer to."""


def encode_places(places: Sequence[Place]) -> Iterator[bytes]:
    """The data of as many pieces as it takes."""
    for first in range(0, len(places), PLACES_PER_PIECE):
        yield b"".join(PLACE.pack(*place) for place in places[first : first + PLACES_PER_PIECE])


def encode_piece(kind: int, number: int, data: bytes) -> tuple[bytes, bytes]:
    return PIECE.pack(kind, 0, len(data), number, _piece_sum(kind, number, data)), data


def encode_end(number: int, position: int) -> tuple[bytes, bytes]:
    """The last piece: how many come before it, and where it is."""
    return encode_piece(KIND_END, number, END.pack(number, position))


def _piece_sum(kind: int, number: int, data: bytes) -> int:
    return crc32(data, crc32(PIECE.pack(kind, 0, len(data), number, 0)))


def read_head(file: FileName, window: Window, cluster_id: ClusterId | None) -> Work[SnapshotHead]:
    """Raises SnapshotBad; VersionFault or ForeignFault for a good head that is not ours to read."""
    content = decode_sector((yield from window.look(0, SECTOR_BYTES)))
    if content is None:
        raise SnapshotBad(0, "the head is damaged")
    magic, version, cluster, index, term, chain, _ = HEAD.unpack_from(content)
    if magic != MAGIC:
        raise SnapshotBad(0, "it does not begin as a snapshot")
    if version > VERSION:
        raise unknown_version(file, version, VERSION)
    found = ClusterId(str(uuid.UUID(bytes=cluster)))
    if cluster_id is not None and found != cluster_id:
        raise foreign_cluster(file, found, cluster_id)
    return SnapshotHead(file, found, index, term, chain)


def read_pieces(window: Window, take: Callable[[int, bytes], bool]) -> Work[None]:
    """Gives each piece, in order, to `take`, for as long as that wants more. Raises SnapshotBad unless all are good and
    the end is there."""
    position, number = SECTOR_BYTES, 0
    while True:
        head = yield from window.look(position, PIECE.size)
        if len(head) < PIECE.size:
            raise SnapshotBad(position, "it ends too early")
        kind, zero, length, found, checksum = PIECE.unpack(head)
        if zero or found != number or length > SNAPSHOT_PIECE_BYTES_MAX:
            raise SnapshotBad(position, "a piece's head is damaged")
        data = yield from window.look(position + PIECE.size, length)
        if len(data) < length or _piece_sum(kind, number, data) != checksum:
            raise SnapshotBad(position, "a piece is damaged")
        if kind == KIND_END:
            if data != END.pack(number, position):
                raise SnapshotBad(position, "pieces are missing")
            return
        if not take(kind, data):
            return
        position += PIECE.size + length
        number += 1


def check(window: Window, cluster_id: ClusterId | None, head: SnapshotHead) -> Work[Foundation]:
    """Reads all of it. Raises SnapshotBad."""
    found = yield from read_head(head.file, window, cluster_id)
    if found != head:
        raise SnapshotBad(0, "the head is not the one that was written")
    return (yield from _read_foundation(window, whole=True))


def read_foundation(window: Window) -> Work[Foundation]:
    """Reads no further than necessary. Raises SnapshotBad."""
    return (yield from _read_foundation(window, whole=False))


def _read_foundation(window: Window, *, whole: bool) -> Work[Foundation]:
    points: list[ChainPoints] = []
    places: list[Place] = []

    def take(kind: int, data: bytes) -> bool:
        if kind == KIND_CHAIN:
            points.append(ChainPoints.decode(data))
        elif kind == KIND_PAGES:
            places.extend(Place(*place) for place in PLACE.iter_unpack(data))
        return whole or kind >= OWN_KINDS

    yield from read_pieces(window, take)
    if len(points) != 1:
        raise SnapshotBad(SECTOR_BYTES, "the chain's points are missing")
    return Foundation(points[0], places)
