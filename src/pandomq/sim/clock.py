"""The clocks of a simulated machine: its wall clock, which may jump, and the one its broker is given.

The broker's is what the runtime's is: the wall clock's time at the start of the process, and from then on as much later
as time has passed. It never goes back, and a wall clock that jumps while the process runs does not move it.
"""

from __future__ import annotations

from typing import Final

from pandomq.sim.agenda import Agenda

EPOCH_MS: Final = 1_800_000_000_000
"""What every wall clock shows when a world begins."""


class WallClock:
    __slots__ = ("_agenda", "shift_ms")

    def __init__(self, agenda: Agenda) -> None:
        self._agenda = agenda
        self.shift_ms = 0
        """By how much it is wrong."""

    def now_ms(self) -> int:
        return EPOCH_MS + self._agenda.now_ms + self.shift_ms


class ProcessClock:
    __slots__ = ("_agenda", "_offset_ms")

    def __init__(self, agenda: Agenda, wall: WallClock) -> None:
        self._agenda = agenda
        self._offset_ms = wall.now_ms() - agenda.now_ms

    def go_on_from(self, last_ms: int) -> None:
        """It was this late once: earlier it cannot be, whatever the wall clock says."""
        self._offset_ms += max(0, last_ms - self.now_ms())

    def now_ms(self) -> int:
        return self._agenda.now_ms + self._offset_ms
