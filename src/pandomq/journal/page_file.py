"""The form of a page file, and what is known of one in memory.

    sector 0     head: whose
    blobs        one after the other, as they came; nothing between them

What is where is not written in the file: the owner's snapshots name the pages they refer to by `Place`, with a checksum
of the whole blob. Whatever no snapshot names is of no use after a restart.
"""

from __future__ import annotations

import struct
import uuid
from typing import Final, NamedTuple

from pandomq.ids import ClusterId
from pandomq.journal.effects import FileName
from pandomq.journal.faults import foreign_cluster, unknown_version
from pandomq.journal.layout import Identity, decode_sector, encode_sector
from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.names import page_file
from pandomq.kernel import crc32

VERSION: Final = 1
MAGIC: Final = b"PANDOPAG"
HEAD: Final = struct.Struct("<8sI4x16sQB")
PLACE: Final = struct.Struct("<QQII")


class Place(NamedTuple):
    """Where a page is, and the checksum of its blob."""

    number: int
    offset: int
    length: int
    checksum: int

    @property
    def end(self) -> int:
        return self.offset + self.length


class PageFile:
    __slots__ = (
        "created",
        "dirty",
        "end",
        "file",
        "headed",
        "live_bytes",
        "number",
        "pages",
        "readers",
        "unfit",
        "unwritten",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.file = page_file(number)
        self.end = SECTOR_BYTES
        """Where the next page goes, whether or not those before it are written already."""
        self.pages: dict[StoredPage, None] = {}
        """Those that their owner has not freed."""
        self.live_bytes = 0
        self.unwritten = 0
        """Writes that wait or are under way."""
        self.readers = 0
        self.created = False
        self.headed = False
        """Its head is written."""
        self.dirty = False
        """Something was written since the last sync."""
        self.unfit = False
        """It is damaged, so it is left as it is."""

    def add(self, page: StoredPage) -> None:
        self.pages[page] = None
        self.live_bytes += page.place.length

    def remove(self, page: StoredPage) -> None:
        del self.pages[page]
        self.live_bytes -= page.place.length


class StoredPage:
    """One page, for as long as its owner wants it. It may move to another file."""

    __slots__ = ("blob", "file", "freed", "held", "place")

    def __init__(self, file: PageFile, place: Place, blob: bytes | None = None) -> None:
        self.file = file
        self.place = place
        self.blob = blob
        """None once it is written."""
        self.freed = False
        self.held = False
        """A snapshot refers to it, so that it must be written even if its owner has no use for it any more."""


def encode_head(identity: Identity, number: int) -> bytes:
    name = identity.node_name.encode()
    cluster = uuid.UUID(identity.cluster_id).bytes
    return encode_sector(HEAD.pack(MAGIC, VERSION, cluster, number, len(name)) + name)


def check_head(file: FileName, number: int, sector: bytes, cluster_id: ClusterId) -> bool:
    """Whether the head is good. Raises VersionFault or ForeignFault for one that is not ours to read."""
    content = decode_sector(sector)
    if content is None:
        return False
    magic, version, cluster, found, _ = HEAD.unpack_from(content)
    if magic != MAGIC:
        return False
    if version > VERSION:
        raise unknown_version(file, version, VERSION)
    owner = ClusterId(str(uuid.UUID(bytes=cluster)))
    if owner != cluster_id:
        raise foreign_cluster(file, owner, cluster_id)
    return bool(found == number)


def is_whole(place: Place, blob: bytes) -> bool:
    return len(blob) == place.length and crc32(blob) == place.checksum
