"""The lead of this broker's own clock over the cluster's time, as stored on its disk (D8).

While a process that has followed a root runs, the cluster's time continues by its steady clock. After a restart of all
brokers there are only the log, which has the time of its last entry, and the new root's wall clock. The entry was timed
by another machine, though, whose clock may have been a day behind: the difference of the two does not measure how long
the cluster was down, and messages would expire by as much as the clocks differ. So each broker saves the lead of its
own clock, and a root that has received the time from no broker subtracts that lead from its clock.

A saved lead that is too large does no harm: the time continues from the last entry in any case. A lead that is too
small lets messages expire early. So a larger lead is saved at once, and the broker acknowledges no entry until it is on
the disk; a smaller one is saved from time to time. Clocks that NTP synchronizes do not differ enough for either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.kernel.records import ENTRY_START, VERSION
from pandomq.replica.protocol.entries import is_own

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.journal.effects import Ticket
    from pandomq.journal.journal import Journal

TOLERANCE_MS: Final = 1_000
"""A lead that differs by less from the one on the disk is not saved."""
LOWERED_MS: Final = 1_000
"""A smaller lead is saved no sooner than this after the last one: a broker that catches up receives old entries."""


class ClockLead:
    __slots__ = ("_journal", "_noted_ms", "_tickets", "clock_ms", "monotonic_ms")

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.clock_ms = self.monotonic_ms = 0
        """The broker's own clock, and the steady one. To be set before any other call for that time."""
        self._noted_ms = -LOWERED_MS
        """The time at which a lead was last passed to the disk."""
        self._tickets: set[Ticket] = set()

    @property
    def saved_ms(self) -> int:
        """The lead that is on the disk, or on its way there."""
        return self._journal.store_identity.state.clock_ahead_ms

    @property
    def unsaved(self) -> bool:
        """A lead is on its way to the disk: what was received with it must not be acknowledged yet."""
        return bool(self._tickets)

    def received(self, payloads: Sequence[bytes]) -> int | None:
        """Takes entries of the root, with the time at which it wrote them; the last one is the newest. Returns that
        time, and None if none of them has one."""
        for payload in reversed(payloads):
            if not is_own(payload) and payload[0] == VERSION:
                cluster_ms: int = ENTRY_START.unpack_from(payload)[1]
                self.compare(cluster_ms)
                return cluster_ms
        return None

    def compare(self, cluster_ms: int) -> None:
        """The cluster's time is at least this."""
        lead_ms, saved_ms = max(0, self.clock_ms - cluster_ms), self.saved_ms
        may_lower = self.monotonic_ms >= self._noted_ms + LOWERED_MS
        if lead_ms > saved_ms + TOLERANCE_MS or (lead_ms < saved_ms - TOLERANCE_MS and may_lower):
            self._noted_ms = self.monotonic_ms
            self._tickets.add(self._journal.store_identity.note_clock(lead_ms))

    def saved(self, ticket: Ticket) -> bool:
        """False if the ticket belongs to another component."""
        if ticket not in self._tickets:
            return False
        self._tickets.remove(ticket)
        return True
