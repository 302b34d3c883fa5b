"""What must be on the disk before anything in it is spoken; the journal's record of the same fields holds it."""

import msgspec

from pandomq.replica.entries import LogEntry


class HardState(msgspec.Struct, frozen=True):
    epoch: int = 0
    epoch_id: str = ""
    """Tells apart forced promotions that took the same number; empty before the first."""
    term: int = 0
    vote: str | None = None
    """For whom this broker voted in this term."""
    membership: bytes = b""
    """A `Record`, encoded; empty in a store that belongs to no cluster yet."""


class Damage(msgspec.Struct, frozen=True):
    """The log is corrupt from this entry on (D12)."""

    first_index: int
    known_term: int
    """The last entry that is known to have existed: by these the broker votes until it is repaired."""
    known_index: int


class StoreFacts(msgspec.Struct, frozen=True):
    """What recovery found."""

    state: HardState
    snapshot_index: int = 0
    """Everything up to here is committed."""
    damage: Damage | None = None
    doubtful: bool = False
    """Entries or votes that were spoken of may be missing: the vote record is unreadable, the store was repaired by
    hand, or it is not always synced and the machine was restarted. Then this broker is a learner."""
    own: tuple[tuple[int, LogEntry], ...] = ()
    """Entries of the log that change members or epochs, with their places, as far as they are after the snapshot: the
    record of them may not have got to the disk."""
