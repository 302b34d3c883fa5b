"""The limits and the settings of the journal.

The format's own bounds are constants; the values that a user may configure are in `JournalSettings`. The assertions at
the end are part of the contract.
"""

from __future__ import annotations

import enum
from typing import Final

import msgspec

from pandomq.hard_state import MEMBERSHIP_BYTES_MAX
from pandomq.limits import KIB, MIB, TRANSACTION_BYTES_MAX

SECTOR_BYTES: Final = 512
"""A disk writes a sector completely or not at all."""

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
FOUNDING_BYTES_MAX: Final = 3 * KIB
"""Maximum size of the record of how the cluster began."""
STATE_COPY_BYTES: Final = 16 * KIB
"""Room for one copy of the hard state."""

SNAPSHOT_PIECE_BYTES_MAX: Final = 16 * MIB
SNAPSHOTS_KEPT: Final = 2
"""The newest, and one to fall back to."""

CHAIN_POINTS_MAX: Final = 4096
CHAIN_STRIDE_FIRST: Final = 256

READ_BYTES_MAX: Final = 64 * MIB
"""Maximum bytes of one read, unless a single entry is larger."""

SECONDARY_SEGMENT_BYTES: Final = 1 * MIB
SECONDARY_SLOT_SHARE_BYTES: Final = 64
"""Most entries of a secondary are nearly empty."""
SECONDARY_LOG_BYTES: Final = 1 * MIB
"""Payload bytes between two snapshots."""

PAGE_WRITE_BYTES_MAX: Final = 4 * MIB
"""Maximum bytes of pages in one write, unless one page is larger."""
PLACES_PER_PIECE: Final = 65_536
"""Places of pages in one piece of a snapshot."""

PART_BYTES_MAX: Final = 1 * MIB
SCANNED_BODIES_MAX: Final = 500_000
"""Bodies that a broker with an incoming snapshot can find in its own store; the sender has to send all others."""
SENDING_IDLE_MS: Final = 60_000
"""A snapshot is no longer kept for other brokers when none has requested a part for this time."""

ARRIVING_SYNC_BYTES: Final = 32 * MIB
"""Bytes of another broker's snapshot between two syncs, so that the log's syncs stay short."""
CATCH_UP_LOG_BYTES_MAX: Final = 16 * 1024 * MIB
"""Log that is kept for a lagging broker that reads it; never more than is free. A broker that lags further gets a
snapshot."""

SPACE_CHECK_MS: Final = 1_000
"""How often the free space of the disk is measured."""


class Fsync(enum.Enum):
    """The point at which an entry counts as durable."""

    ALWAYS = "always"
    """An entry is durable when it is on the disk."""
    INTERVAL = "interval"
    """An entry is durable when the operating system has it; the disk gets it within `fsync_interval_ms`."""
    NEVER = "never"
    """An entry is durable when the operating system has it."""


class JournalSettings(msgspec.Struct, frozen=True, kw_only=True):
    segment_bytes: int = 64 * MIB
    slot_share_bytes: int = SLOT_SHARE_BYTES
    fsync: Fsync = Fsync.ALWAYS
    fsync_interval_ms: int = 200
    snapshot_log_bytes: int = 256 * MIB
    """A snapshot is due when the log has grown by this much, or by twice the last snapshot, whichever is more."""
    part_bytes: int = PART_BYTES_MAX
    """The size of one part of a snapshot for another broker."""
    page_file_bytes: int = 64 * MIB
    """A page file that has reached this size gets no more pages."""
    sparse_percent: int = 50
    """A page file with less than this share of wanted bytes is swept."""
    disk_free_bytes_min: int = 256 * MIB
    """Publishers are held back below this free space."""
    reserve_bytes: int = 64 * MIB
    """Size of a reserve file that is deleted when the disk is full, to make room for acks and deletes; 0 keeps none."""
    retain_bytes: int = 0
    """Bytes of segments that are kept for an audit when they would be deleted; 0 keeps none."""
    retain_ms: int = 0
    """Maximum age of these segments; 0: only the size limits them."""
    replay_chunk_bytes: int = 4 * MIB
    bulk_chunk_bytes: int = 256 * KIB
    """Bytes that snapshots read or write in one step."""
    bulk_sync_bytes: int = 4 * MIB
    """Bytes of a bulk file between two syncs, so that it does not hold up the log's."""

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
        """A secondary's log is small, and has nothing that other brokers do not have: a sync of every entry would be
        wasted."""
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
