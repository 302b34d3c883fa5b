"""The clocks of a simulated machine: a monotonic clock, a wall clock that may jump, and the broker's clock.

The monotonic clock runs a little faster or slower than the world's time, and the other clocks follow it. The broker's
clock works as in the runtime: it starts with the wall clock's time at the start of the process, and then advances with
the monotonic clock. It never goes back, and a wall clock that jumps while the process runs does not change it.
"""

from __future__ import annotations

from typing import Final

from pandomq.sim.agenda import Agenda

EPOCH_MS: Final = 1_800_000_000_000
"""The time that every wall clock shows when a world begins."""


class SteadyClock:
    __slots__ = ("_agenda", "_base_ms", "_since_ms", "_speed_permille")

    def __init__(self, agenda: Agenda, drift_permille: int = 0) -> None:
        self._agenda = agenda
        self._speed_permille = 1000 + drift_permille
        self._base_ms = self._since_ms = 0

    def now_ms(self) -> int:
        return self._base_ms + (self._agenda.now_ms - self._since_ms) * self._speed_permille // 1000

    def run_at(self, speed_permille: int) -> None:
        """Changes the speed of the clock from now on."""
        self._base_ms, self._since_ms = self.now_ms(), self._agenda.now_ms
        self._speed_permille = speed_permille

    def leap(self, by_ms: int) -> None:
        """The world's time has just advanced by so much in one step, and this clock advances by the same time. No drift
        is added: drift that is realistic over seconds here would not be realistic over weeks, since real clocks are
        corrected."""
        self._base_ms += by_ms
        self._since_ms += by_ms

    def world_ms(self, span_ms: int) -> int:
        """Returns the world's time in which this clock advances by `span_ms`."""
        return -(-span_ms * 1000 // self._speed_permille)


class WallClock:
    __slots__ = ("_steady", "leaps_ms", "shift_ms")

    def __init__(self, steady: SteadyClock) -> None:
        self._steady = steady
        self.shift_ms = 0
        """The error of the wall clock."""
        self.leaps_ms = 0
        """The sum of all jumps forward."""

    def jump(self, by_ms: int) -> None:
        self.shift_ms += by_ms
        self.leaps_ms += max(0, by_ms)

    def now_ms(self) -> int:
        return EPOCH_MS + self._steady.now_ms() + self.shift_ms


class ProcessClock:
    __slots__ = ("_offset_ms", "_steady")

    def __init__(self, steady: SteadyClock, wall: WallClock) -> None:
        self._steady = steady
        self._offset_ms = wall.now_ms() - steady.now_ms()

    def go_on_from(self, last_ms: int) -> None:
        """Advances the clock to `last_ms`, a time that the broker has reached before; the wall clock may be behind
        it."""
        now_ms = self.now_ms()
        if last_ms > now_ms:
            self._offset_ms += last_ms - now_ms

    def now_ms(self) -> int:
        # `SteadyClock.now_ms` in place: a step asks several times.
        steady = self._steady
        since_ms = steady._agenda.now_ms - steady._since_ms
        return steady._base_ms + since_ms * steady._speed_permille // 1000 + self._offset_ms
