"""The cluster's time (D8): a new root continues from the last entry, by a clock that never goes back.

Wall clocks of different machines differ. A broker that follows a root knows the root's time from its entries, and from
its own steady clock how long ago that was; on takeover, it tells the broker by how much its own clock is ahead of that.
So whatever its wall clock shows, nothing expires too early. A root that has nothing to write writes the time
periodically: then brokers that joined later know it, too; a broker that has just started receives it from any broker
that knows it, in a greeting. A broker that has known the time once knows it for as long as its process runs, also when
the node restarts. After a restart of all brokers the new root uses its own wall clock, less its former lead over the
cluster's time (`clock_lead`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.kernel.records import ENTRY_START, VERSION
from pandomq.node.log.clock_lead import ClockLead
from pandomq.replica.limits import TOLD_SLACK_MS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.broker.broker import Broker
    from pandomq.broker.log.revival import Revival
    from pandomq.journal.journal import Journal
    from pandomq.node.log.replication import Replication

TIME_ENTRY_MS: Final = 60_000
"""A root writes an entry at least this often, if other brokers read it."""
DRIFT_DIVISOR: Final = 10
"""The steady clocks of two brokers differ by less than this part of the time that passes, as leases presume."""
DRIFT_STEP_MS: Final = 10 * DRIFT_DIVISOR
"""The drift of clocks is computed for no shorter time."""


class ClusterTime:
    __slots__ = (
        "_broker",
        "_entry_ms",
        "_heard_ms",
        "_known_ms",
        "_revival",
        "_told_ms",
        "_written_ms",
        "last_ahead_ms",
        "lead",
        "monotonic_ms",
    )

    def __init__(self, broker: Broker, revival: Revival, journal: Journal) -> None:
        self._broker = broker
        self._revival = revival
        self._entry_ms = self._known_ms = self._heard_ms = self._written_ms = 0
        self.monotonic_ms = 0
        self.lead = ClockLead(journal)
        self._told_ms: int | None = None
        self.last_ahead_ms: int | None = None
        """The lead of the cluster's time over the steady clock, as this process last knew it."""

    def note_time(self, clock_ms: int, monotonic_ms: int) -> None:
        lead = self.lead
        self.monotonic_ms = lead.monotonic_ms = monotonic_ms
        lead.clock_ms = clock_ms
        if self.last_ahead_ms is not None and not self._known_ms:
            # This process knew the time before the node restarted, and the entries that it applies now may be old.
            self._learn(self.last_ahead_ms)

    def exchange(self, replication: Replication, *, has_news: bool) -> None:
        """Gives the replica this broker's knowledge of the cluster's time, and takes the times that other brokers sent.
        `has_news`: this broker has applied entries that a root wrote since this node began."""
        followed, told = replication.life.took_over or has_news, replication.replica.told_ahead_ms
        if told != self._told_ms and not replication.life.is_over:
            self.told(told, followed=followed)
        known = self.ahead_ms(followed=followed)
        # A broker that has just started passes on what it received: it may vote for a root that no other broker
        # reaches.
        replication.replica.know_time(told if known is None else known)

    def received(self, payloads: Sequence[bytes]) -> None:
        """Takes entries that the root has sent, the newest last. They count from their receipt, not from their commit:
        the time that an entry waits for its commit says nothing about this broker's clock."""
        entry_ms = self.lead.received(payloads)
        if entry_ms is None:
            return
        # An entry may have been under way for hours, if this broker or all of them were suspended: what was known
        # before is then nearer to the truth, less what clocks drift.
        passed_ms = self._passed_ms
        at_least_ms = self._known_ms + passed_ms + -passed_ms // DRIFT_DIVISOR
        if entry_ms >= at_least_ms:
            self._known_ms, self._heard_ms = entry_ms, self.monotonic_ms
        elif passed_ms >= DRIFT_STEP_MS:
            # In steps that are long enough to be divided: otherwise a broker with a fast clock whose root writes
            # every few milliseconds would never come back to what its root writes.
            self._known_ms, self._heard_ms = at_least_ms, self.monotonic_ms

    def applied(self) -> None:
        """Entries may have been applied, also old ones: the cluster's time is not before that of the last one."""
        if self._revival.last_ms != self._entry_ms:
            self._entry_ms = self._revival.last_ms
            if self._entry_ms > self._known_ms + self._passed_ms:
                self._known_ms, self._heard_ms = self._entry_ms, self.monotonic_ms

    @property
    def _passed_ms(self) -> int:
        """The time since this broker received the known time; 0 if it knows none."""
        return self.monotonic_ms - self._heard_ms if self._known_ms else 0

    def told(self, ahead_ms: int | None, *, followed: bool) -> None:
        """Takes the difference between the cluster's time and the steady clock that another broker last reported; None
        if no broker reported one. `followed`: this broker is root, or has applied entries that a root wrote since this
        node began, and uses its own knowledge instead."""
        if ahead_ms is not None and ahead_ms != self._told_ms:
            self._told_ms = ahead_ms
            if not followed and ahead_ms > self._known_ms - self._heard_ms - TOLD_SLACK_MS:
                # The entries that it has applied so far are those of its own log, and those to come may be old.
                self._learn(ahead_ms)
            # If one broker knows only an old entry, its time is behind; this may be either of the two.
            if self.last_ahead_ms is None or ahead_ms > self.last_ahead_ms:
                self.lead.compare(self.monotonic_ms + ahead_ms)

    def _learn(self, ahead_ms: int) -> None:
        self._known_ms, self._heard_ms = max(self.monotonic_ms + ahead_ms, self._entry_ms), self.monotonic_ms

    def ahead_ms(self, *, followed: bool) -> int | None:
        """The lead of the cluster's time over the steady clock; None if this broker cannot determine it. `followed`:
        the broker has applied entries that a root wrote since this node began, or is root."""
        if followed and self._known_ms:
            self.last_ahead_ms = self._known_ms - self._heard_ms
        return self.last_ahead_ms

    def take_over(self, now_ms: int, told_ahead_ms: int | None, *, followed: bool) -> int:
        """Sets the broker's time; from now on it gets `now_ms`. Other brokers may have sent the time."""
        self._written_ms = self.monotonic_ms
        known = [ahead_ms for ahead_ms in (self.ahead_ms(followed=followed), told_ahead_ms) if ahead_ms is not None]
        if followed and len(known) > 1 and max(known) <= known[0] + TOLD_SLACK_MS:
            # The root's recent entries must not be replaced by what the clock of another broker, which may have
            # received nothing from the root for longer, has made of an earlier entry.
            del known[1:]
        if known:
            # A broker that knows only an old entry is behind, and none that followed a root can be ahead. The last
            # entry was not later than now: it may be newer than what the running brokers know.
            cluster_ms = max(self.monotonic_ms + max(known), self._revival.last_ms)
            self._broker.clock_ahead_ms = now_ms - cluster_ms
        else:
            # Its own clock may have been set back since then; the last entry was not later than now.
            self._broker.clock_ahead_ms = max(0, min(self.lead.saved_ms, now_ms - self._revival.last_ms))
        self._known_ms, self._heard_ms = now_ms - self._broker.clock_ahead_ms, self.monotonic_ms
        self.lead.compare(self._known_ms)
        return self._known_ms

    def wrote(self) -> None:
        self._written_ms = self.monotonic_ms

    def due_entry(self, now_ms: int) -> bytes | None:
        """Returns an entry with the time and no records, if none was written for long."""
        if self.monotonic_ms - self._written_ms < TIME_ENTRY_MS:
            return None
        return ENTRY_START.pack(VERSION, now_ms - self._broker.clock_ahead_ms, 0)
