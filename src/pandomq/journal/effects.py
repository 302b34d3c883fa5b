"""What the journal asks of a disk, and how the disk answers.

A closed set: whoever carries it out (`runtime.disk` on a directory, `sim.disk` in memory) matches it exhaustively. The
files are named within one directory that nobody else uses.

Requests of one lane are carried out in order, one after the other; lanes are independent of each other. The journal
writes a file in one lane only, and where lanes depend on each other it waits for the completion. Until a `SyncFile` or
`SyncDirectory` has completed, what came before it may be lost at a crash, in any part: sectors of a write, names, and
sizes, one without the other.
"""

import enum
from typing import NamedTuple, NewType

import msgspec

FileName = NewType("FileName", str)
Ticket = NewType("Ticket", int)


class Create(msgspec.Struct, frozen=True, gc=False):
    """A new, empty file; it is an error if there is one. So many bytes of the disk are set aside for it if the disk can
    do that, without changing its size."""

    file: FileName
    reserve_bytes: int = 0


class Write(msgspec.Struct, frozen=True, gc=False):
    """The chunks, one after the other, from this offset on; a file grows as needed, with zeros in between."""

    file: FileName
    offset: int
    chunks: tuple[bytes, ...]


class SyncFile(msgspec.Struct, frozen=True, gc=False):
    """Completed when all that was written to the file before is on the disk: in this lane, or completed in another."""

    file: FileName


class SyncDirectory(msgspec.Struct, frozen=True, gc=False):
    """Completed when all that was created, renamed and deleted in this lane before is on the disk."""


class Read(msgspec.Struct, frozen=True, gc=False):
    """Results in bytes: fewer than wanted where the file ends."""

    file: FileName
    offset: int
    length: int


class Resize(msgspec.Struct, frozen=True, gc=False):
    """The file ends here from now on, and holds on to no more of the disk than that."""

    file: FileName
    size_bytes: int


class Rename(msgspec.Struct, frozen=True, gc=False):
    """Takes the place of a file of the new name, if there is one."""

    file: FileName
    new: FileName


class Delete(msgspec.Struct, frozen=True, gc=False):
    file: FileName


class ListFiles(msgspec.Struct, frozen=True, gc=False):
    """Results in the names and sizes of all files."""


class MeasureSpace(msgspec.Struct, frozen=True, gc=False):
    """Results in the bytes that are free for us."""


Effect = Create | Write | SyncFile | SyncDirectory | Read | Resize | Rename | Delete | ListFiles | MeasureSpace


class Lane(enum.Enum):
    LOG = "log"
    """What a confirm or a vote waits for."""
    READ = "read"
    """What a consumer waits for."""
    BULK = "bulk"
    """Snapshots, sweeping, new segments: nobody waits, as long as it gets done."""
    PAGES = "pages"
    """What leaves memory: publishers would have to wait for it."""


class Request(NamedTuple):
    ticket: Ticket
    lane: Lane
    effect: Effect


class DiskError(msgspec.Struct, frozen=True, gc=False):
    """Why an effect was not carried out: a number of `errno`, and the system's words for it."""

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
