"""What time it is in the cluster (D8): a new root goes on from the last entry, by a clock that only goes on.

Wall clocks of different machines differ. Who follows a root knows from its entries what time it is there, and from its
own steady clock how long ago that was; taking over, it tells the broker by how much its own clock is ahead of that. So
whatever its wall clock says, nothing expires too early. A root that has nothing to write says what time it is once in a
while: then those who came later know it, too; and who has just started hears it from whoever knows, in a greeting. Who
has known it once knows it for as long as its process lives, also when it begins again. After a restart of all brokers
the wall clock is all there is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.kernel.records import ENTRY_START, VERSION

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.revival import Revival

TIME_ENTRY_MS: Final = 60_000
"""A root writes an entry at least this often, where there are others to read it."""


class ClusterTime:
    __slots__ = ("_broker", "_heard_ms", "_known_ms", "_revival", "_written_ms", "last_ahead_ms", "monotonic_ms")

    def __init__(self, broker: Broker, revival: Revival) -> None:
        self._broker = broker
        self._revival = revival
        self._known_ms = self._heard_ms = self._written_ms = 0
        self.monotonic_ms = 0
        self.last_ahead_ms: int | None = None
        """By how much the cluster's time is ahead of the steady clock, as this process last knew it."""

    def heard(self) -> None:
        """Entries may have been applied."""
        if self._revival.last_ms != self._known_ms:
            self._known_ms, self._heard_ms = self._revival.last_ms, self.monotonic_ms

    def ahead_ms(self, *, followed: bool) -> int | None:
        """By how much the cluster's time is ahead of the steady clock; None if nobody can know it by this broker.
        `followed`: it has followed a root, or is one."""
        if followed and self._known_ms:
            self.last_ahead_ms = self._known_ms - self._heard_ms
        return self.last_ahead_ms

    def take_office(self, now_ms: int, told_ahead_ms: int | None, *, followed: bool) -> int:
        """What time it is for the broker, which is told `now_ms` from now on. Others may have told it."""
        self._written_ms = self.monotonic_ms
        known = [ahead_ms for ahead_ms in (self.ahead_ms(followed=followed), told_ahead_ms) if ahead_ms is not None]
        if known:
            # Who knows only of an old entry is behind, and nobody who went by a root can be ahead.
            self._broker.clock_ahead_ms = now_ms - (self.monotonic_ms + max(known))
        self._known_ms, self._heard_ms = now_ms - self._broker.clock_ahead_ms, self.monotonic_ms
        return self._known_ms

    def wrote(self) -> None:
        self._written_ms = self.monotonic_ms

    def due_entry(self, now_ms: int) -> bytes | None:
        """Says what time it is, if nothing has for long; without records."""
        if self.monotonic_ms - self._written_ms < TIME_ENTRY_MS:
            return None
        return ENTRY_START.pack(VERSION, now_ms - self._broker.clock_ahead_ms, 0)
