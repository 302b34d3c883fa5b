"""The configurable settings of election and replication, and the relations between the times."""

import msgspec

from pandomq.replica.limits import APPEND_BYTES_MAX, TAIL_BYTES_MAX


class ReplicaSettings(msgspec.Struct, frozen=True, kw_only=True):
    lease_ms: int = 1_000
    """How long a root may serve after the last answer of half of the primaries."""
    drift_percent: int = 10
    """The maximum difference in speed of two monotonic clocks: backups keep their promise that much longer."""
    disk_stall_ms: int = 1_000
    """A root whose disk has a sync to do, and has done none for longer, steps down."""
    min_copies: int = 2
    """Synced copies that a commit needs; never fewer than half of the primaries, never more than there are."""
    last_man_standing: bool = False
    """Lets `min_copies` sink to the number of brokers in sync, with an alarm."""
    append_bytes: int = APPEND_BYTES_MAX
    """Payloads of one append, unless a single entry is larger."""
    tail_bytes: int = TAIL_BYTES_MAX
    """Entries kept in memory for sending."""

    def __post_init__(self) -> None:
        if self.lease_ms < 50:
            raise ValueError(f"lease_ms must be at least 50, not {self.lease_ms}")
        if not 0 <= self.drift_percent <= 100:
            raise ValueError(f"drift_percent must be between 0 and 100, not {self.drift_percent}")
        if self.min_copies < 1:
            raise ValueError(f"min_copies must be at least 1, not {self.min_copies}")
        if self.disk_stall_ms < 1:
            raise ValueError(f"disk_stall_ms must be at least 1, not {self.disk_stall_ms}")
        if not 1 <= self.append_bytes <= APPEND_BYTES_MAX:
            raise ValueError(f"append_bytes must be between 1 and {APPEND_BYTES_MAX}, not {self.append_bytes}")
        if not 1 <= self.tail_bytes <= TAIL_BYTES_MAX:
            raise ValueError(f"tail_bytes must be between 1 and {TAIL_BYTES_MAX}, not {self.tail_bytes}")

    @property
    def heartbeat_ms(self) -> int:
        """Four may be lost before a lease runs out."""
        return self.lease_ms // 5

    @property
    def promise_ms(self) -> int:
        """For this long after a message of a root a backup votes for no other broker. It is longer than a lease on any
        clock that drifts within bounds: so when a new root is elected, the lease of the old one has run out."""
        return self.lease_ms + self.lease_ms * self.drift_percent // 100

    @property
    def delay_ms(self) -> int:
        """A heartbeat whose answer takes longer waits behind too many entries: several heartbeats must fit into a
        lease."""
        return self.lease_ms // 4

    @property
    def candidacy_ms(self) -> int:
        """How long a candidate waits for votes."""
        return self.lease_ms // 2
