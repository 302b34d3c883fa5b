"""What the journal tells its owner. A closed set, in the order in which things became true."""

import enum

import msgspec

from pandomq.ids import LogIndex, Term
from pandomq.journal.effects import FileName, Ticket
from pandomq.journal.hard_state import HardState
from pandomq.journal.layout import Identity
from pandomq.journal.page_file import StoredPage


class Entry(msgspec.Struct, frozen=True, gc=False):
    index: LogIndex
    term: Term
    payload: bytes


class Stage(enum.Enum):
    """What recovery, or a tool, is busy with."""

    COPY = "copy"
    FILES = "files"
    SNAPSHOT = "snapshot"
    LOG = "log"
    BODIES = "bodies"
    """All that a restart can do without."""


class FlawKind(enum.Enum):
    HEAD = "head"
    """The head of a file, whose content follows from elsewhere."""
    TABLE = "table"
    """An entry is whole, but the table has lost it."""
    BODY = "body"
    """An entry below the snapshot is damaged: nobody needs it for a restart."""
    SNAPSHOT = "snapshot"
    """A snapshot that cannot be used; an older one or the log replaces it."""
    PAGE = "page"
    """A page that a snapshot refers to, or queues do: the messages in it are unreadable."""
    STATE = "state"
    """One of the two copies of the hard state."""


class Flaw(msgspec.Struct, frozen=True):
    """Damage that does not stop the log from being used."""

    kind: FlawKind
    file: FileName
    offset: int
    text: str
    index: int = 0
    """The entry concerned; 0 if there is none."""


class Damage(msgspec.Struct, frozen=True):
    """The log is corrupt from this entry on. It can be read up to the one before; nothing can be appended until it
    was truncated here."""

    file: FileName
    offset: int
    index: LogIndex
    text: str
    known_index: LogIndex
    """The last entry that is known to have existed, and its term: by these the broker votes."""
    known_term: Term
    end_known: bool = True
    """Nothing followed that entry. Otherwise what the store has forgotten is not known either, and it is in doubt."""


class TornTail(msgspec.Struct, frozen=True):
    """Entries that were being written when the broker stopped; nobody was told of them."""

    file: FileName
    offset: int
    cut_bytes: int


class Progress(msgspec.Struct, frozen=True):
    stage: Stage
    done_bytes: int
    total_bytes: int


class SnapshotBegins(msgspec.Struct, frozen=True):
    """The state starts from here: its pieces follow, then the entries after it."""

    index: LogIndex
    term: Term


class SnapshotPiece(msgspec.Struct, frozen=True):
    kind: int
    data: bytes


class Replayed(msgspec.Struct, frozen=True):
    """Entries of the log after the snapshot, in order."""

    entries: list[Entry]


class Recovered(msgspec.Struct, frozen=True):
    """The store is open. Whatever is in it is on the disk."""

    identity: Identity
    hard_state: HardState
    snapshot_index: LogIndex
    """0 without a snapshot."""
    first_index: LogIndex
    """The first entry from which on all are held whole."""
    last_index: LogIndex
    last_term: Term
    torn: TornTail | None = None
    damage: Damage | None = None
    flaws: tuple[Flaw, ...] = ()
    """Those that could be mended have been."""


class Durable(msgspec.Struct, frozen=True):
    """Entries up to this one are safe, as the fsync policy has it."""

    index: LogIndex


class EntriesRead(msgspec.Struct, frozen=True):
    """At least one entry, or a flaw in the first one wanted."""

    ticket: Ticket
    entries: list[Entry]
    flaw: Flaw | None = None
    """Why there are not more."""


class PageFetched(msgspec.Struct, frozen=True):
    """The blob as it was put; it was checked."""

    page: StoredPage
    blob: bytes


class StateSaved(msgspec.Struct, frozen=True):
    ticket: Ticket


class Truncated(msgspec.Struct, frozen=True):
    ticket: Ticket
    aside: FileName | None
    """Where the entries are kept that were cut off."""


class SnapshotSaved(msgspec.Struct, frozen=True):
    """The snapshot was read back and found good."""

    index: LogIndex
    size_bytes: int


class SnapshotFailed(msgspec.Struct, frozen=True):
    """It was given up, for want of space or because the owner said so; the older one holds."""

    index: LogIndex
    reason: str


class PartRead(msgspec.Struct, frozen=True):
    """A part of a snapshot for another broker."""

    ticket: Ticket
    source: str
    """The snapshot's name."""
    index: LogIndex
    """The last entry that is in it."""
    term: Term
    data: bytes
    last: bool
    flaw: str = ""
    """Why there is none."""


class PartTaken(msgspec.Struct, frozen=True):
    ticket: Ticket
    lacks: bool = False
    """It was not: it names bodies that are not here, and is wanted as it is."""


class Installed(msgspec.Struct, frozen=True):
    """The snapshot is whole. It takes the place of the store when that is opened again, which is to be now."""

    ticket: Ticket


class InstallFailed(msgspec.Struct, frozen=True):
    """It is not; nothing has changed."""

    ticket: Ticket
    reason: str


class Emptied(msgspec.Struct, frozen=True):
    """The store is set aside when it is opened again, which is to be now."""


class SpaceLow(msgspec.Struct, frozen=True):
    """Publishers are to be held back."""

    free_bytes: int


class SpaceBack(msgspec.Struct, frozen=True):
    free_bytes: int


class FlawFound(msgspec.Struct, frozen=True):
    """Damage that turned up while the store was in use."""

    flaw: Flaw


class Closed(msgspec.Struct, frozen=True):
    """Everything is on the disk, and known to be."""


Event = (
    Progress
    | SnapshotBegins
    | SnapshotPiece
    | Replayed
    | Recovered
    | Durable
    | EntriesRead
    | PageFetched
    | StateSaved
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
