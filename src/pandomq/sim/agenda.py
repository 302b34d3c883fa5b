"""The time of a world, and what is to happen when.

Nothing else in a world waits: whoever wants something to happen later says when. What is due at the same millisecond
happens in the order in which it was asked for, so that a seed has one course only.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable


class Agenda:
    __slots__ = ("_due", "_numbers", "events", "now_ms")

    def __init__(self) -> None:
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        self.now_ms = 0
        self.events = 0
        """That have happened."""

    def at(self, due_ms: int, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (max(due_ms, self.now_ms), next(self._numbers), call))

    def after(self, delay_ms: int, call: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now_ms + delay_ms, next(self._numbers), call))

    def run(self, end_ms: int, over: Callable[[], bool] | None = None) -> bool:
        """Until it is over, or later than that; says whether it is over."""
        due = self._due
        while True:
            if over is not None and over():
                return True
            if not due or due[0][0] > end_ms:
                self.now_ms = max(self.now_ms, end_ms)
                return False
            self.now_ms, _, call = heapq.heappop(due)
            self.events += 1
            call()
