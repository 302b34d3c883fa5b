"""Computes brokers, memory, disks, network and executors for a demand.

Measured figures are in `Measured`, assumptions in `Demand`.
"""

from math import ceil
from typing import Final

import msgspec

from tools.compare.scaling.measured import Measured

DAY_S: Final = 86_400
GIGABIT: Final = 1e9 / 8
"""Bytes per second."""


class Demand(msgspec.Struct, frozen=True):
    subscribers: int = 100_000
    messages_a_day: int = 1_000_000_000
    peak: float = 4.0
    """The peak, as a multiple of the mean."""
    body_bytes: int = 1024
    overhead_bytes: int = 100
    """Bytes of a message on a wire: frames, method, properties, keys."""
    copies: int = 10
    """Subscribers that get a message."""
    subscribers_per_broker: int = 10_000
    """No broker was measured with more connections."""
    kept_days: int = 1
    """In streams, until it is archived and beyond."""
    line_gigabits: int = 10
    line_share: float = 0.8
    """The usable share of a line."""


class Plan(msgspec.Struct, frozen=True):
    demand: Demand
    found: Measured

    @property
    def mean(self) -> float:
        """Messages per second, like those below."""
        return self.demand.messages_a_day / DAY_S

    @property
    def peak(self) -> float:
        return self.mean * self.demand.peak

    @property
    def wire_bytes(self) -> int:
        return self.demand.body_bytes + self.demand.overhead_bytes

    # Brokers.

    @property
    def secondaries(self) -> int:
        """One may fail."""
        return ceil(self.demand.subscribers / self.demand.subscribers_per_broker) + 1

    @property
    def serving(self) -> int:
        return self.secondaries - 1

    @property
    def root_share(self) -> float:
        """Of the measured replicated load."""
        return self.peak / self.found.replicated

    @property
    def deliveries_each(self) -> float:
        """By one secondary, at the peak, when one is missing."""
        return self.peak * self.demand.copies / self.serving

    @property
    def connections_mib_each(self) -> float:
        return self.demand.subscribers / self.serving * self.found.connection_kib / 1024

    @property
    def come_back_s(self) -> float:
        """Until the subscribers of a failed secondary are connected to the others."""
        return self.demand.subscribers / self.secondaries / self.serving / self.found.opened

    # Network, in gigabits per second, at the peak.

    @property
    def copies_from_root(self) -> int:
        """To two backups and to each secondary."""
        return 2 + self.secondaries

    @property
    def root_out(self) -> float:
        return self.peak * self.wire_bytes * self.copies_from_root / GIGABIT

    @property
    def secondary_out(self) -> float:
        return self.deliveries_each * self.wire_bytes / GIGABIT

    # Disks of each primary.

    @property
    def written_mb_at_peak(self) -> float:
        """Per second."""
        return self.peak * self.demand.body_bytes * self.found.disk_bytes_per_byte / 1e6

    @property
    def written_tb_a_day(self) -> float:
        return self.demand.messages_a_day * self.demand.body_bytes * self.found.disk_bytes_per_byte / 1e12

    @property
    def kept_tb(self) -> float:
        return self.demand.messages_a_day * self.wire_bytes * self.demand.kept_days / 1e12

    @property
    def disk_tb(self) -> float:
        """Twice the kept data, and room for the log."""
        return ceil(2 * self.kept_tb) + 1

    @property
    def catch_up_min(self) -> float:
        """For a primary that was away for an hour of the mean load."""
        return self.mean * 3600 * self.wire_bytes / 2**20 / self.found.catch_up_mib / 60

    # Spark.

    @property
    def archive_cores(self) -> int | None:
        """At the peak, and as many again: one executor may fail, and a backlog must shrink."""
        rate = self.found.archive_rows
        return None if rate is None else 2 * ceil(self.peak / (rate / self.found.cores))

    @property
    def archive_day_hours(self) -> float | None:
        """For a whole day at once, by those cores."""
        rate, cores = self.found.archive_rows, self.archive_cores
        if rate is None or cores is None:
            return None
        return self.demand.messages_a_day / (rate / self.found.cores * cores) / 3600

    @property
    def lake_tb_a_day(self) -> float | None:
        beyond = self.found.lake_bytes_per_row
        return None if beyond is None else self.demand.messages_a_day * (self.demand.body_bytes + beyond) / 1e12

    @property
    def audit_core_hours(self) -> float | None:
        """For a day of three logs: a message enters a stream, or a queue and leaves it."""
        rate = self.found.audit_records
        return None if rate is None else 6 * self.demand.messages_a_day / (rate / self.found.cores) / 3600

    # The limits of one root.

    @property
    def line_bytes(self) -> float:
        return self.demand.line_gigabits * GIGABIT * self.demand.line_share

    @property
    def line_rate(self) -> float:
        """Messages per second that can leave the root for this many brokers."""
        return self.line_bytes / (self.wire_bytes * self.copies_from_root)

    @property
    def line_subscribers(self) -> int:
        """Subscribers whose secondaries the root can feed at the peak."""
        brokers = int(self.line_bytes / (self.peak * self.wire_bytes)) - 2
        return (brokers - 1) * self.demand.subscribers_per_broker

    @property
    def end_rate(self) -> float:
        """The rate at the first of the root's limits."""
        return min(self.found.replicated, self.line_rate)

    @property
    def end_a_day(self) -> float:
        """Messages, at the same peak."""
        return self.end_rate / self.demand.peak * DAY_S
