"""What the journal may hold and how it is told to behave.

The format's own bounds are constants; what a user may configure is in `JournalSettings`. The assertions at the end are
part of the contract.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from pandomq.limits import KIB, MIB, TRANSACTION_BYTES_MAX

SECTOR_BYTES: Final = 512
"""What a disk writes whole or not at all."""

PAGE_BYTES: Final = 4 * KIB
"""Regions of a file begin at multiples of this."""

ENTRY_BYTES_MAX: Final = 1024 * MIB
"""The largest payload; an entry larger than a segment gets a segment of its own."""

SEGMENT_BYTES_MIN: Final = 8 * KIB
SEGMENT_BYTES_MAX: Final = 1024 * MIB

SLOT_SHARE_BYTES: Final = 1 * KIB
"""A segment's table has one slot for each this many bytes of its body."""
SLOTS_MIN: Final = 16

NODE_NAME_BYTES_MAX: Final = 255
MEMBERSHIP_BYTES_MAX: Final = 12 * KIB
FOUNDING_BYTES_MAX: Final = 3 * KIB
"""What is noted of how the cluster began."""
STATE_COPY_BYTES: Final = 16 * KIB
"""Room for one copy of the hard state."""

SNAPSHOT_PIECE_BYTES_MAX: Final = 16 * MIB
SNAPSHOTS_KEPT: Final = 2
"""The newest, and the one to fall back to."""

CHAIN_POINTS_MAX: Final = 4096
CHAIN_STRIDE_FIRST: Final = 256

READ_BYTES_MAX: Final = 64 * MIB
"""Bytes that one read brings at most, unless a single entry is larger."""

SECONDARY_SEGMENT_BYTES: Final = 1 * MIB
SECONDARY_SLOT_SHARE_BYTES: Final = 64
"""Most entries of a secondary are nearly empty."""
SECONDARY_LOG_BYTES: Final = 1 * MIB
"""Of payloads, between two snapshots."""

PAGE_WRITE_BYTES_MAX: Final = 4 * MIB
"""Pages that are written in one go, unless one is larger."""
PLACES_PER_PIECE: Final = 65_536
"""Places of pages in one piece of a snapshot."""

PART_BYTES_MAX: Final = 1 * MIB
INVENTORY_BODIES_MAX: Final = 500_000
"""Bodies of which a broker that gets a snapshot knows where it has them already; what else it has is sent."""
SENDING_IDLE_MS: Final = 60_000
"""A snapshot of which nobody has asked for a part for so long is kept no longer."""

ARRIVING_SYNC_BYTES: Final = 32 * MIB
"""How much of a snapshot from another broker is left to one sync; meanwhile the log has little to sync itself."""
CATCH_UP_LOG_BYTES_MAX: Final = 16 * 1024 * MIB
"""Of the log, kept for a broker that reads it and is behind; never more than is free. Past it, it gets a snapshot."""

SPACE_CHECK_MS: Final = 1_000
"""How often the free space of the disk is asked for."""


class Fsync(enum.Enum):
    """When an entry counts as durable."""

    ALWAYS = "always"
    """Once it is on the disk."""
    INTERVAL = "interval"
    """Once the operating system has it; the disk gets it within `fsync_interval_ms`."""
    NEVER = "never"
    """Once the operating system has it."""


class JournalSettings(msgspec.Struct, frozen=True, kw_only=True):
    segment_bytes: int = 64 * MIB
    slot_share_bytes: int = SLOT_SHARE_BYTES
    fsync: Fsync = Fsync.ALWAYS
    fsync_interval_ms: int = 200
    snapshot_log_bytes: int = 256 * MIB
    """A snapshot is due when the log has grown by this much, or by twice the last snapshot, whichever is more."""
    part_bytes: int = PART_BYTES_MAX
    """What another broker gets of a snapshot in one part."""
    page_file_bytes: int = 64 * MIB
    """A page file that has reached this size gets no more pages."""
    sparse_percent: int = 50
    """A page file with less than this share of wanted bytes is swept."""
    disk_free_bytes_min: int = 256 * MIB
    """Below this much free space publishers are to be held back."""
    reserve_bytes: int = 64 * MIB
    """Kept in a file that is given up when the disk is full, for acks and deletes; 0 keeps none."""
    retain_bytes: int = 0
    """Segments that would be deleted are kept for an audit, so much of them; 0 keeps none."""
    retain_ms: int = 0
    """And none for longer than this; 0: age does not matter."""
    replay_chunk_bytes: int = 4 * MIB
    bulk_chunk_bytes: int = 256 * KIB
    """What snapshots read or write in one step."""
    bulk_sync_bytes: int = 4 * MIB
    """How much of a bulk file is left to one sync, so that it does not hold up the log's."""

    def __post_init__(self) -> None:
        if not SEGMENT_BYTES_MIN <= self.segment_bytes <= SEGMENT_BYTES_MAX:
            raise ValueError(
                f"segment_bytes must be between {SEGMENT_BYTES_MIN} and {SEGMENT_BYTES_MAX}, not {self.segment_bytes}"
            )
        if not 1 <= self.sparse_percent <= 90:
            raise ValueError(f"sparse_percent must be between 1 and 90, not {self.sparse_percent}")
        if not 1 <= self.part_bytes <= PART_BYTES_MAX:
            raise ValueError(f"part_bytes must be between 1 and {PART_BYTES_MAX}, not {self.part_bytes}")
        if self.fsync_interval_ms < 1:
            raise ValueError(f"fsync_interval_ms must be at least 1, not {self.fsync_interval_ms}")

    def of_secondary(self) -> JournalSettings:
        """Its log is small, and it has nothing that others do not have: a sync of every entry would be wasted."""
        return msgspec.structs.replace(
            self,
            segment_bytes=min(self.segment_bytes, SECONDARY_SEGMENT_BYTES),
            slot_share_bytes=SECONDARY_SLOT_SHARE_BYTES,
            snapshot_log_bytes=min(self.snapshot_log_bytes, SECONDARY_LOG_BYTES),
            reserve_bytes=0,
            retain_bytes=0,
            fsync=Fsync.INTERVAL if self.fsync is Fsync.ALWAYS else self.fsync,
        )

    @property
    def slot_count(self) -> int:
        """A whole number of sectors of slots."""
        return max(SLOTS_MIN, self.segment_bytes // self.slot_share_bytes // 16 * 16)


assert TRANSACTION_BYTES_MAX < ENTRY_BYTES_MAX, "a transaction is one entry"
assert SEGMENT_BYTES_MAX + ENTRY_BYTES_MAX < 2**32, "a position in a segment fits 32 bits"
assert MEMBERSHIP_BYTES_MAX + FOUNDING_BYTES_MAX + 3 * NODE_NAME_BYTES_MAX < STATE_COPY_BYTES
