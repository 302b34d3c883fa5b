"""What the replica wants done. A closed set, to be carried out in order and matched exhaustively.

The order matters: an effect may depend on those before it. Where the replica must know that something is done, it is
told by `Replica.completed` (`completions`), and until then holds back whatever speaks of it. So the owner never
waits: it starts each effect and goes on.
"""

from __future__ import annotations

import enum

import msgspec

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.hard_state import HardState
from pandomq.replica.membership import Membership
from pandomq.replica.messages import Message
from pandomq.replica.roles.transitions import Role


class SaveState(msgspec.Struct, frozen=True):
    """To be synced; answered by StateSaved with this number. A newer one may take the place of one that waits."""

    number: int
    state: HardState


class Write(msgspec.Struct, frozen=True):
    """Entries of one term for the end of the log, to be synced; answered by Synced."""

    first_index: LogIndex
    term: Term
    payloads: tuple[bytes, ...]


class Cut(msgspec.Struct, frozen=True):
    """The log ends before this entry; answered by CutDone. Never more than one at a time. Entries written after it
    take the places that became free."""

    first_index: LogIndex
    keep_aside: bool
    """What is cut off goes to a file, and is named to a person."""


class SetAside(msgspec.Struct, frozen=True):
    """The whole store of the log, which another epoch has overtaken below its commit index, is to be kept aside, and
    the broker begins empty: with no state of its own and a log that ends at 0. Answered by StoreEmptied; or the
    process begins again with an empty store, and is a learner in doubt then."""

    reason: str


class Fetch(msgspec.Struct, frozen=True):
    """Entries from disk for a peer that is behind; answered by Fetched, or Missing if the log begins later."""

    peer: NodeName
    first_index: LogIndex
    bytes_max: int
    excerpts: bool = False
    """Only excerpts of them are needed. If there are many it is better to answer Missing: those of a snapshot are
    less."""


class Send(msgspec.Struct, frozen=True):
    peer: NodeName
    message: Message


class Committed(msgspec.Struct, frozen=True):
    """Entries up to here will never be cut within this epoch. On a root they are synced on enough disks."""

    index: LogIndex


class Received(msgspec.Struct, frozen=True):
    """On a root: enough brokers hold the entries up to here in memory. That is no commit: it confirms what was
    published as reliable-transient, and nothing else."""

    index: LogIndex


class RoleChanged(msgspec.Struct, frozen=True):
    role: Role
    term: Term
    root: NodeName | None
    """Who is root as far as this broker knows; also told when only that changes."""


class Serve(msgspec.Struct, frozen=True):
    """On a root: an entry of its own term is committed, and with it all that any root before it had committed. The
    broker may finish its takeover and serve."""

    term: Term
    index: LogIndex
    handed_over: bytes | None
    """What the old root said of deliveries, if it handed over and nobody was root in between."""


class Resigned(msgspec.Struct, frozen=True):
    """This broker was root and no longer is, since it says so itself: clients are to be told. RoleChanged follows."""

    reason: str
    successor: NodeName | None = None
    """In whose favour, if it was."""


class AlarmKind(enum.Enum):
    LAST_MAN_STANDING = "last_man_standing"
    """Commits have fewer copies than `min_copies`."""
    TOO_FEW_COPIES = "too_few_copies"
    """Nothing can be committed, since backups are missing; the root keeps its office and its deliveries."""
    SPLIT_EPOCHS = "split_epochs"
    """A peer follows another forced promotion of the same number. The two sides never merge by themselves."""
    DAMAGED_LOG = "damaged_log"
    """The log is corrupt and waits for a root from which it can be repaired."""
    BAD_SNAPSHOT = "bad_snapshot"
    """A snapshot that was received did not stand the test."""


class Alarm(msgspec.Struct, frozen=True):
    kind: AlarmKind
    raised: bool
    """False when it is over."""
    text: str


class ReadPiece(msgspec.Struct, frozen=True):
    """A part of the newest snapshot, or of the one a transfer began with, for a peer; answered by PieceRead or
    NoSnapshot. The snapshot is to be kept while pieces of it are asked for, if that is possible."""

    peer: NodeName
    source: str
    """Which snapshot; empty for the newest."""
    number: int
    lean: bool = False
    """What the peer may have already need not be in it, as long as it can tell what is missing."""
    excerpts: bool = False
    """What a secondary gets, instead of everything."""


class TakePiece(msgspec.Struct, frozen=True):
    """A part of a snapshot that comes from the root, whole and in order, to be kept beside the store; answered by
    PieceTaken. Number 0 begins a new one and drops what there was of another."""

    source: str
    number: int
    data: bytes


class InstallSnapshot(msgspec.Struct, frozen=True):
    """All pieces are there. If they are a whole snapshot it takes the place of store and state, otherwise nothing
    changes; answered by SnapshotInstalled or SnapshotBad. The log then begins after it."""

    source: str
    index: LogIndex
    term: Term


class MembersChanged(msgspec.Struct, frozen=True):
    """These are the members from now on, as far as this broker knows."""

    membership: Membership


class ChangeEnded(msgspec.Struct, frozen=True):
    """What became of `change_members`, `hand_over` or `promote`."""

    done: bool
    text: str


class PrepareHandOver(msgspec.Struct, frozen=True):
    """The next root holds the whole log. Deliveries stop now; answered by HandOverPrepared with what the new root
    has to know of those that were made, or HandOverPrepared(None)."""

    peer: NodeName


Effect = (
    SaveState
    | Write
    | Cut
    | SetAside
    | Fetch
    | Send
    | Committed
    | Received
    | RoleChanged
    | Serve
    | Resigned
    | Alarm
    | ReadPiece
    | TakePiece
    | InstallSnapshot
    | MembersChanged
    | ChangeEnded
    | PrepareHandOver
)
