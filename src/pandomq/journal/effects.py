"""The requests of the journal to a disk, and the disk's completions.

A closed set: the disk (`runtime.disk` on a directory, `sim.disks` in memory) matches it exhaustively. File names are
relative to one directory that no other process uses.

Requests of one lane are carried out in order, one after the other; lanes are independent of each other. The journal
writes a file in one lane only, and where lanes depend on each other it waits for the completion. Until a `SyncFile` or
`SyncDirectory` has completed, a crash may lose any part of what came before it: sectors of a write, names, and sizes,
independently of each other.
"""

import enum
from typing import NamedTuple, NewType

import msgspec

FileName = NewType("FileName", str)
Ticket = NewType("Ticket", int)


class Create(msgspec.Struct, frozen=True, gc=False):
    """Creates an empty file; it is an error if the file exists. Reserves this many bytes of disk space for it if the
    disk supports that, without changing its size."""

    file: FileName
    reserve_bytes: int = 0


class Write(msgspec.Struct, frozen=True, gc=False):
    """Writes the chunks, one after the other, from this offset on; a file grows as needed, with zeros in between."""

    file: FileName
    offset: int
    chunks: tuple[bytes, ...]


class SyncFile(msgspec.Struct, frozen=True, gc=False):
    """Completes when all earlier writes to the file are on disk: those of this lane, and completed ones of others."""

    file: FileName


class SyncDirectory(msgspec.Struct, frozen=True, gc=False):
    """Completes when all names that were created, renamed and deleted in this lane before are on disk."""


class Read(msgspec.Struct, frozen=True, gc=False):
    """Results in bytes: fewer than requested at the end of the file."""

    file: FileName
    offset: int
    length: int


class Resize(msgspec.Struct, frozen=True, gc=False):
    """Sets the end of the file, and releases the disk space after it."""

    file: FileName
    size_bytes: int


class Rename(msgspec.Struct, frozen=True, gc=False):
    """Renames a file; replaces a file of the new name."""

    file: FileName
    new: FileName


class Delete(msgspec.Struct, frozen=True, gc=False):
    file: FileName


class ListFiles(msgspec.Struct, frozen=True, gc=False):
    """Results in the names and sizes of all files."""


class MeasureSpace(msgspec.Struct, frozen=True, gc=False):
    """Results in the number of free bytes that this process can use."""


Effect = Create | Write | SyncFile | SyncDirectory | Read | Resize | Rename | Delete | ListFiles | MeasureSpace


class Lane(enum.Enum):
    LOG = "log"
    """Confirms and votes wait for it."""
    READ = "read"
    """Consumers wait for it."""
    BULK = "bulk"
    """Snapshots, sweeping, new segments: nothing waits for it."""
    PAGES = "pages"
    """Pages that leave memory: if this is slow, publishers have to wait."""

    # Lanes are keys of the disk's tables; the enumeration's own hash is computed from the name, in Python.
    __hash__ = object.__hash__


class Request(NamedTuple):
    ticket: Ticket
    lane: Lane
    effect: Effect


class DiskError(msgspec.Struct, frozen=True, gc=False):
    """The reason why an effect failed: an `errno` number, and the system's message."""

    number: int
    text: str


class FileInfo(NamedTuple):
    file: FileName
    size_bytes: int


Result = bytes | tuple[FileInfo, ...] | int | None


class Completion(NamedTuple):
    ticket: Ticket
    result: Result = None
    error: DiskError | None = None
