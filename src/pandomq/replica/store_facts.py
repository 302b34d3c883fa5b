"""The facts about its store with which a replica begins."""

import msgspec

from pandomq.hard_state import HardState
from pandomq.replica.protocol.entries import LogEntry


class Damage(msgspec.Struct, frozen=True):
    """The log is corrupt from this entry on (D12)."""

    first_index: int
    known_term: int
    """The last entry that is known to have existed: the broker uses it in votes until it is repaired."""
    known_index: int


class StoreFacts(msgspec.Struct, frozen=True):
    """The facts that recovery found."""

    state: HardState
    snapshot_index: int = 0
    """Everything up to here is committed."""
    damage: Damage | None = None
    doubtful: bool = False
    """Entries or votes that were sent may be missing: the vote record is unreadable, the store was repaired by hand, or
    it is not always synced and the machine was restarted. Then this broker is a learner."""
    own: tuple[tuple[int, LogEntry], ...] = ()
    """Entries of the log that change members or epochs, with their indexes, as far as they are after the snapshot: the
    record of them may not be on disk."""
