"""How long the passes of the loop take: from the first event of the pass to the end of the step.

A broker receives nothing in the middle of a pass. A pass of half a lease may soon cost a root its role, and is logged;
the log cannot tell whether the broker had too much work or the machine gave it too little time.
"""

import logging
from collections.abc import Callable
from time import perf_counter
from typing import Final

from pandomq.node.views.records import PassesView

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
        """Records a pass; the next one may have begun already."""
        elapsed_s = self._clock_s() - began_s
        self._count += 1
        self._total_s += elapsed_s
        if elapsed_s > self._longest_s:
            self._longest_s = elapsed_s
        if elapsed_s > LONG_S:
            log.warning(
                "this broker was busy for %.1f s and handled no input meanwhile; a root of several brokers steps down "
                "when it is busy for longer than lease_ms",
                elapsed_s,
            )

    def view(self) -> PassesView:
        return PassesView(self._count, self._total_s, self._longest_s)
