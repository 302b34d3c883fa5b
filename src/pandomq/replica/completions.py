"""What the replica is told when an effect is done. A closed set, one or two for each effect that is answered."""

from __future__ import annotations

import msgspec

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.entries import LogEntry


class StateSaved(msgspec.Struct, frozen=True):
    number: int
    """This state and all before it would survive a crash."""


class Synced(msgspec.Struct, frozen=True):
    """Entries up to here are as safe as the fsync policy makes them."""

    index: LogIndex


class CutDone(msgspec.Struct, frozen=True):
    """The disk has forgotten what was cut off. What the log says to be synced from now on is of the new entries."""


class StoreEmptied(msgspec.Struct, frozen=True):
    """The log is empty, and so is the broker's state. The hard state is saved again next."""


class Fetched(msgspec.Struct, frozen=True):
    peer: NodeName
    first_index: LogIndex
    entries: tuple[LogEntry, ...]
    """At least one."""


class Missing(msgspec.Struct, frozen=True):
    """The log no longer has, or cannot read, the first entry that was asked for."""

    peer: NodeName
    first_index: LogIndex


class PieceRead(msgspec.Struct, frozen=True):
    peer: NodeName
    source: str
    """Names the snapshot: no two that differ have the same name, on any broker."""
    index: LogIndex
    """The last entry that is in the snapshot; it is committed."""
    term: Term
    number: int
    data: bytes
    last: bool


class NoSnapshot(msgspec.Struct, frozen=True):
    """There is none, or it is not the one that was asked for any more."""

    peer: NodeName
    source: str


class PieceTaken(msgspec.Struct, frozen=True):
    source: str
    number: int
    lacks: bool = False
    """It was not: what was left out of it is not here, and it is wanted whole."""


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
