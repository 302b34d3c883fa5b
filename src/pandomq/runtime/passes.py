"""How long the passes of the loop take: from the first thing that it found to be done to the end of the step.

A broker that is in the middle of a pass hears nobody. One of half a lease is on the way to costing a root its office,
and worth a line; whether the broker had so much to do or the machine too little time for it, its log cannot tell.
"""

import logging
from collections.abc import Callable
from time import perf_counter
from typing import Final

from pandomq.node.view_records import PassesView

log = logging.getLogger("pandomq")

LONG_S: Final = 0.5


class Passes:
    __slots__ = ("_clock_s", "_count", "_longest_s", "_total_s", "began_s")

    def __init__(self, clock_s: Callable[[], float] = perf_counter) -> None:
        self._clock_s = clock_s
        self._count = 0
        self._total_s = self._longest_s = 0.0
        self.began_s = 0.0

    def begin(self) -> None:
        self.began_s = self._clock_s()

    def end(self, began_s: float) -> None:
        """The next one may have begun already."""
        elapsed_s = self._clock_s() - began_s
        self._count += 1
        self._total_s += elapsed_s
        if elapsed_s > self._longest_s:
            self._longest_s = elapsed_s
        if elapsed_s > LONG_S:
            log.warning("for %.1f s this broker was busy, and heard nobody", elapsed_s)

    def view(self) -> PassesView:
        return PassesView(self._count, self._total_s, self._longest_s)
