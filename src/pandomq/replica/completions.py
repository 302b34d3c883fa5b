"""The completions of effects. A closed set, one or two for each effect that is answered."""

from __future__ import annotations

import msgspec

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.protocol.entries import LogEntry


class StateSaved(msgspec.Struct, frozen=True):
    number: int
    """The number of the newest state that would survive a crash, as would all earlier ones."""


class Synced(msgspec.Struct, frozen=True):
    """Entries up to here are safe under the fsync policy."""

    index: LogIndex


class CutDone(msgspec.Struct, frozen=True):
    """The disk has removed the entries that were cut off. From now on the log's synced index refers to the new
    entries."""


class StoreEmptied(msgspec.Struct, frozen=True):
    """The log is empty, and so is the broker's state. The hard state is saved again next."""


class Fetched(msgspec.Struct, frozen=True):
    peer: NodeName
    first_index: LogIndex
    entries: tuple[LogEntry, ...]
    """The entries, at least one."""


class Missing(msgspec.Struct, frozen=True):
    """The log no longer has, or cannot read, the first requested entry."""

    peer: NodeName
    first_index: LogIndex


class PieceRead(msgspec.Struct, frozen=True):
    peer: NodeName
    source: str
    """Names the snapshot: two different snapshots never have the same name, on any broker."""
    index: LogIndex
    """The last entry that the snapshot includes; it is committed."""
    term: Term
    number: int
    data: bytes
    last: bool


class NoSnapshot(msgspec.Struct, frozen=True):
    """The answer when there is no snapshot, or when the requested one no longer exists."""

    peer: NodeName
    source: str


class PieceTaken(msgspec.Struct, frozen=True):
    source: str
    number: int
    lacks: bool = False
    """The piece could not be used: bodies that were left out of it are not in this store, and it must be sent in
    full."""


class SnapshotInstalled(msgspec.Struct, frozen=True):
    source: str


class SnapshotBad(msgspec.Struct, frozen=True):
    source: str
    reason: str


class HandOverPrepared(msgspec.Struct, frozen=True):
    payload: bytes | None


Completion = (
    StateSaved
    | Synced
    | CutDone
    | StoreEmptied
    | Fetched
    | Missing
    | PieceRead
    | NoSnapshot
    | PieceTaken
    | SnapshotInstalled
    | SnapshotBad
    | HandOverPrepared
)
