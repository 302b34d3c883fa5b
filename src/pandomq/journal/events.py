"""The journal's events for its owner. A closed set, in the order in which they became true."""

import enum

import msgspec

from pandomq.hard_state import HardState
from pandomq.ids import LogIndex, Term
from pandomq.journal.effects import FileName, Ticket
from pandomq.journal.paging.page_file import StoredPage
from pandomq.journal.segments.layout import Identity


class Entry(msgspec.Struct, frozen=True, gc=False):
    index: LogIndex
    term: Term
    payload: bytes


class RecoveryStage(enum.Enum):
    """The current stage of recovery, or of a tool."""

    COPY = "copy"
    FILES = "files"
    SNAPSHOT = "snapshot"
    LOG = "log"
    BODIES = "bodies"
    """All bodies that a restart does not need."""


class FlawKind(enum.Enum):
    HEAD = "head"
    """The head of a file, whose content is known from elsewhere."""
    TABLE = "table"
    """An entry is intact, but its table slot is lost."""
    BODY = "body"
    """An entry below the snapshot is damaged: a restart does not need it."""
    SNAPSHOT = "snapshot"
    """An unusable snapshot; an older one or the log replaces it."""
    PAGE = "page"
    """A page that a snapshot or queues refer to: the messages in it are unreadable."""
    STATE = "state"
    """One of the two copies of the hard state."""


class Flaw(msgspec.Struct, frozen=True):
    """Damage that does not make the log unusable."""

    kind: FlawKind
    file: FileName
    offset: int
    text: str
    index: int = 0
    """The entry concerned; 0 if there is none."""


class LogCorruption(msgspec.Struct, frozen=True):
    """The log is corrupt from this entry on. Entries before it can be read; nothing can be appended until the log is
    truncated here."""

    file: FileName
    offset: int
    index: LogIndex
    text: str
    known_index: LogIndex
    """The last entry that is known to have existed, and its term: the broker uses these for votes."""
    known_term: Term
    end_known: bool = True
    """Whether nothing followed that entry. Otherwise it is unknown what the store has lost, and it is in doubt."""


class TornTail(msgspec.Struct, frozen=True):
    """Entries that were being written when the broker stopped; they were never confirmed."""

    file: FileName
    offset: int
    cut_bytes: int


class RecoveryProgress(msgspec.Struct, frozen=True):
    stage: RecoveryStage
    done_bytes: int
    total_bytes: int


class SnapshotBegins(msgspec.Struct, frozen=True):
    """The state starts from here: its pieces follow, then the entries after it."""

    index: LogIndex
    term: Term


class RestoredPiece(msgspec.Struct, frozen=True):
    kind: int
    data: bytes


class Replayed(msgspec.Struct, frozen=True):
    """Entries of the log after the snapshot, in order."""

    entries: list[Entry]


class Recovered(msgspec.Struct, frozen=True):
    """The store is open. Everything in it is on disk."""

    identity: Identity
    hard_state: HardState
    snapshot_index: LogIndex
    """0 without a snapshot."""
    first_index: LogIndex
    """The first index from which all entries are held whole."""
    last_index: LogIndex
    last_term: Term
    torn: TornTail | None = None
    damage: LogCorruption | None = None
    flaws: tuple[Flaw, ...] = ()
    """Repairable flaws have been repaired."""


class Durable(msgspec.Struct, frozen=True):
    """Entries up to this one are safe under the fsync policy."""

    index: LogIndex


class EntriesRead(msgspec.Struct, frozen=True):
    """Holds at least one entry, or a flaw in the first one requested."""

    ticket: Ticket
    entries: list[Entry]
    flaw: Flaw | None = None
    """The reason why there are not more."""


class PageFetched(msgspec.Struct, frozen=True):
    """The blob as it was stored; its checksum is right."""

    page: StoredPage
    blob: bytes


class HardStateSaved(msgspec.Struct, frozen=True):
    ticket: Ticket


class Truncated(msgspec.Struct, frozen=True):
    ticket: Ticket
    aside: FileName | None
    """The file with the entries that were cut off."""


class SnapshotSaved(msgspec.Struct, frozen=True):
    """The snapshot was read back and is good."""

    index: LogIndex
    size_bytes: int


class SnapshotFailed(msgspec.Struct, frozen=True):
    """The snapshot was abandoned, for lack of space or at the owner's request; the older one stays valid."""

    index: LogIndex
    reason: str


class PartRead(msgspec.Struct, frozen=True):
    """A part of a snapshot for another broker."""

    ticket: Ticket
    source: str
    """The snapshot's name."""
    index: LogIndex
    """The last entry that the snapshot includes."""
    term: Term
    data: bytes
    last: bool
    flaw: str = ""
    """The reason why there is none."""


class PartTaken(msgspec.Struct, frozen=True):
    ticket: Ticket
    lacks: bool = False
    """The part could not be used: it names bodies that are not in this store, and has to be sent in full."""


class Installed(msgspec.Struct, frozen=True):
    """The snapshot is complete. It replaces the store at the next opening, which the owner must do now."""

    ticket: Ticket


class InstallFailed(msgspec.Struct, frozen=True):
    """The snapshot is not usable; nothing has changed."""

    ticket: Ticket
    reason: str


class Emptied(msgspec.Struct, frozen=True):
    """The store is set aside at the next opening, which the owner must do now."""


class SpaceLow(msgspec.Struct, frozen=True):
    """The owner must hold back publishers."""

    free_bytes: int
    min_bytes: int
    """The setting `disk_free_bytes_min`."""


class SpaceBack(msgspec.Struct, frozen=True):
    free_bytes: int


class FlawFound(msgspec.Struct, frozen=True):
    """Damage that was found while the store was in use."""

    flaw: Flaw


class Closed(msgspec.Struct, frozen=True):
    """Everything is on disk, and recorded as such."""


Event = (
    RecoveryProgress
    | SnapshotBegins
    | RestoredPiece
    | Replayed
    | Recovered
    | Durable
    | EntriesRead
    | PageFetched
    | HardStateSaved
    | Truncated
    | SnapshotSaved
    | SnapshotFailed
    | PartRead
    | PartTaken
    | Installed
    | InstallFailed
    | Emptied
    | SpaceLow
    | SpaceBack
    | FlawFound
    | Closed
)
