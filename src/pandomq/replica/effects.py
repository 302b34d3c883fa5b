"""The effects that the replica requests. A closed set, to be carried out in order and matched exhaustively.

The order matters: an effect may depend on those before it. Where the replica must know that an effect is done,
`Replica.completed` reports it (`completions`), and until then the replica holds back messages that depend on it. So the
owner never waits: it starts each effect and continues.
"""

from __future__ import annotations

import enum
from typing import NewType

import msgspec

from pandomq.hard_state import HardState
from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.members.membership import Membership
from pandomq.replica.protocol.messages import ReplicaMessage
from pandomq.replica.roles.transitions import Role

RequestNumber = NewType("RequestNumber", int)
"""Identifies a request of the operator among all requests to this replica since its start."""


class SaveState(msgspec.Struct, frozen=True):
    """To be synced; answered by StateSaved with this number. A newer state may replace a waiting one."""

    number: int
    state: HardState


class WriteEntries(msgspec.Struct, frozen=True):
    """Entries of one term for the end of the log, to be synced; answered by Synced."""

    first_index: LogIndex
    term: Term
    payloads: tuple[bytes, ...]


class Cut(msgspec.Struct, frozen=True):
    """The log ends before this entry; answered by CutDone. Never more than one at a time. Entries written after it
    take the places that became free."""

    first_index: LogIndex
    keep_aside: bool
    """The entries that are cut off go to a file, and the operator is told its name."""


class SetAside(msgspec.Struct, frozen=True):
    """The whole store of the log, which another epoch has overtaken below its commit index, is set aside, and the
    broker begins again with a log that ends at 0. It keeps epoch, term and vote, and this takes the place of its record
    of members: a broker that lost its votes would be a learner in doubt, and if most of an epoch's voters were, no root
    could be elected in it. Answered by StoreEmptied; or the process restarts with the empty store."""

    reason: str
    membership: bytes


class Fetch(msgspec.Struct, frozen=True):
    """Entries from disk for a peer that is behind; answered by Fetched, or Missing if the log begins later."""

    peer: NodeName
    first_index: LogIndex
    bytes_max: int
    excerpts: bool = False
    """Whether only excerpts of them are needed. If there are many it is better to answer Missing: the excerpts in a
    snapshot are smaller."""


class Send(msgspec.Struct, frozen=True):
    peer: NodeName
    message: ReplicaMessage


class Committed(msgspec.Struct, frozen=True):
    """Entries up to here will never be cut within this epoch. On a root they are synced on enough disks."""

    index: LogIndex


class Received(msgspec.Struct, frozen=True):
    """Sent on a root when enough brokers hold the entries up to here in memory. That is no commit: it confirms only
    publishes that are reliable-transient."""

    index: LogIndex


class RoleChanged(msgspec.Struct, frozen=True):
    role: Role
    term: Term
    root: NodeName | None
    """The root as far as this broker knows; also sent when only that changes."""


class Serve(msgspec.Struct, frozen=True):
    """Sent on a root when an entry of its own term is committed, and with it everything that earlier roots had
    committed. The broker may finish its takeover and serve."""

    term: Term
    index: LogIndex
    handed_over: bytes | None
    """The old root's report of deliveries, if it handed over and there was no root in between."""


class SteppedDown(msgspec.Struct, frozen=True):
    """Sent when this broker has stepped down as root: its clients must be notified. RoleChanged follows."""

    reason: str
    successor: NodeName | None = None
    """The broker in whose favour it stepped down, if any."""


class AlarmKind(enum.Enum):
    LAST_MAN_STANDING = "last_man_standing"
    """Commits have fewer copies than `min_copies`."""
    TOO_FEW_COPIES = "too_few_copies"
    """Nothing can be committed, since backups are missing; the root stays root and keeps its deliveries."""
    SPLIT_EPOCHS = "split_epochs"
    """A peer is in another forced promotion of the same number. The two sides never merge automatically."""
    DAMAGED_LOG = "damaged_log"
    """The log is corrupt, and the broker waits for a root from which it can be repaired."""
    BAD_SNAPSHOT = "bad_snapshot"
    """A received snapshot did not pass its check."""


class Alarm(msgspec.Struct, frozen=True):
    kind: AlarmKind
    raised: bool
    """False when it is over."""
    text: str


class ReadPiece(msgspec.Struct, frozen=True):
    """A part of the newest snapshot, or of the one a transfer began with, for a peer; answered by PieceRead or
    NoSnapshot. The snapshot should be kept while pieces of it are requested."""

    peer: NodeName
    source: str
    """Which snapshot; empty for the newest."""
    number: int
    lean: bool = False
    """Bodies that the peer may have already need not be included, as long as the peer can detect missing ones."""
    excerpts: bool = False
    """Whether the form for a secondary is wanted, instead of everything."""


class TakePiece(msgspec.Struct, frozen=True):
    """A part of a snapshot from the root, complete and in order, to be kept beside the store; answered by PieceTaken.
    Number 0 begins a new one and drops the parts of any other."""

    source: str
    number: int
    data: bytes


class InstallSnapshot(msgspec.Struct, frozen=True):
    """All pieces are there. If they are a complete snapshot it replaces store and state, otherwise nothing changes;
    answered by SnapshotInstalled or SnapshotBad. The log then begins after it."""

    source: str
    index: LogIndex
    term: Term


class MembersChanged(msgspec.Struct, frozen=True):
    """The members of the cluster from now on, as far as this broker knows."""

    membership: Membership


class ChangeEnded(msgspec.Struct, frozen=True):
    """The result of `change_members`, `hand_over` or `promote`."""

    request: RequestNumber
    """The return value of the call. Answers do not come in the order of requests."""
    done: bool
    text: str


class PrepareHandOver(msgspec.Struct, frozen=True):
    """The next root holds the whole log. The owner stops deliveries, and answers with HandOverPrepared and what the new
    root has to know of earlier ones, or with HandOverPrepared(None)."""

    peer: NodeName


Effect = (
    SaveState
    | WriteEntries
    | Cut
    | SetAside
    | Fetch
    | Send
    | Committed
    | Received
    | RoleChanged
    | Serve
    | SteppedDown
    | Alarm
    | ReadPiece
    | TakePiece
    | InstallSnapshot
    | MembersChanged
    | ChangeEnded
    | PrepareHandOver
)
