"""The time of a world, and the schedule of its events.

Nothing else in a world waits: code that needs something to happen later schedules a call here. Calls that are due at
the same millisecond run in the order in which they were scheduled, so a seed determines one course of events.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from heapq import heappop, heappush


class Agenda:
    __slots__ = ("_due", "_leapt_ms", "_numbers", "events", "now_ms")

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self.now_ms = 0
        self._leapt_ms = 0
        self.events = 0
        """Number of events that have happened."""

    def at(self, due_ms: int, call: Callable[[], None]) -> None:
        now_ms = self.now_ms
        heappush(self._due, (due_ms if due_ms > now_ms else now_ms, next(self._numbers), call))

    def after(self, delay_ms: int, call: Callable[[], None]) -> None:
        heappush(self._due, (self.now_ms + delay_ms, next(self._numbers), call))

    def leap(self, by_ms: int) -> None:
        """Advances the time by so much while nothing happens: all scheduled calls are postponed by the same time. A
        `run` that is in progress lasts longer by the same time."""
        self.now_ms += by_ms
        self._leapt_ms += by_ms
        # Changed in place, because `leap` may be called while `run` runs; the order does not change.
        self._due[:] = [(due_ms + by_ms, number, call) for due_ms, number, call in self._due]

    def run(self, end_ms: int, over: Callable[[], bool] | None = None) -> bool:
        """Runs events until `over` returns true or the time `end_ms` is reached; returns whether `over` returned
        true."""
        due = self._due
        # Later leaps are added to the end time again.
        end_ms -= self._leapt_ms
        while True:
            if over is not None and over():
                return True
            if not due or due[0][0] > end_ms + self._leapt_ms:
                self.now_ms = max(self.now_ms, end_ms + self._leapt_ms)
                return False
            self.now_ms, _, call = heappop(due)
            self.events += 1
            call()
