"""The clocks of a simulated machine: one that only goes on, its wall clock, which may jump, and the broker's.

The first runs a little faster or slower than the world's time; all others follow it. The broker's is what the runtime's
is: the wall clock's time at the start of the process, and from then on as much later as time has passed. It never goes
back, and a wall clock that jumps while the process runs does not move it.
"""

from __future__ import annotations

from typing import Final

from pandomq.sim.agenda import Agenda

EPOCH_MS: Final = 1_800_000_000_000
"""What every wall clock shows when a world begins."""


class SteadyClock:
    __slots__ = ("_agenda", "_base_ms", "_since_ms", "_speed_permille")

    def __init__(self, agenda: Agenda, drift_permille: int = 0) -> None:
        self._agenda = agenda
        self._speed_permille = 1000 + drift_permille
        self._base_ms = self._since_ms = 0

    def now_ms(self) -> int:
        return self._base_ms + (self._agenda.now_ms - self._since_ms) * self._speed_permille // 1000

    def run_at(self, speed_permille: int) -> None:
        """From now on it goes at this speed."""
        self._base_ms, self._since_ms = self.now_ms(), self._agenda.now_ms
        self._speed_permille = speed_permille

    def world_ms(self, span_ms: int) -> int:
        """How long the world waits until this clock has gone on by so much."""
        return -(-span_ms * 1000 // self._speed_permille)


class WallClock:
    __slots__ = ("_steady", "shift_ms")

    def __init__(self, steady: SteadyClock) -> None:
        self._steady = steady
        self.shift_ms = 0
        """By how much it is wrong."""

    def now_ms(self) -> int:
        return EPOCH_MS + self._steady.now_ms() + self.shift_ms


class ProcessClock:
    __slots__ = ("_offset_ms", "_steady")

    def __init__(self, steady: SteadyClock, wall: WallClock) -> None:
        self._steady = steady
        self._offset_ms = wall.now_ms() - steady.now_ms()

    def go_on_from(self, last_ms: int) -> None:
        """It was this late once: earlier it cannot be, whatever the wall clock says."""
        self._offset_ms += max(0, last_ms - self.now_ms())

    def now_ms(self) -> int:
        return self._steady.now_ms() + self._offset_ms
