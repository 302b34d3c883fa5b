"""The form of a page file, and its state in memory.

    sector 0     head: the store's identity
    blobs        one after the other, in the order of arrival; nothing between them

The file has no index: the owner's snapshots name the pages they refer to by `PagePlace`, with a checksum
of the whole blob. A page that no snapshot names is useless after a restart.
"""

from __future__ import annotations

import struct
import uuid
from typing import Final, NamedTuple

from pandomq.ids import ClusterId
from pandomq.journal.effects import FileName
from pandomq.journal.faults import foreign_cluster, unknown_version
from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.names import page_file
from pandomq.journal.segments.layout import Identity, decode_sector, encode_sector
from pandomq.kernel import crc32

VERSION: Final = 1
MAGIC: Final = b"PANDOPAG"
HEAD: Final = struct.Struct("<8sI4x16sQB")
PLACE: Final = struct.Struct("<QQII")


class PagePlace(NamedTuple):
    """The place of a page, and the checksum of its blob."""

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
        """The place of the next page, including pages that are not written yet."""
        self.pages: dict[StoredPage, None] = {}
        """Pages that their owner has not freed."""
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
        """Whether the file is damaged, and is left unchanged."""

    def add(self, page: StoredPage) -> None:
        self.pages[page] = None
        self.live_bytes += page.place.length

    def remove(self, page: StoredPage) -> None:
        del self.pages[page]
        self.live_bytes -= page.place.length


class StoredPage:
    """One page, for as long as its owner needs it. It may move to another file."""

    __slots__ = ("blob", "file", "freed", "held", "place")

    def __init__(self, file: PageFile, place: PagePlace, blob: bytes | None = None) -> None:
        self.file = file
        self.place = place
        self.blob = blob
        """None once it is written."""
        self.freed = False
        self.held = False
        """A snapshot refers to it, so it must be written even if its owner no longer needs it."""


def encode_head(identity: Identity, number: int) -> bytes:
    name = identity.node_name.encode()
    cluster = uuid.UUID(identity.cluster_id).bytes
    return encode_sector(HEAD.pack(MAGIC, VERSION, cluster, number, len(name)) + name)


def check_head(file: FileName, number: int, sector: bytes, cluster_id: ClusterId) -> bool:
    """Whether the head is good. Raises VersionFault or ForeignFault for one that this broker must not read."""
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


def is_whole(place: PagePlace, blob: bytes) -> bool:
    return len(blob) == place.length and crc32(blob) == place.checksum
