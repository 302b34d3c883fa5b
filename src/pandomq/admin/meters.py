"""The rates of the broker's own counters, for the overview."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

from pandomq.admin.limits import RATE_WINDOW_S


class Meters:
    """Keeps counters from one request to the next; rates are over at least a window."""

    __slots__ = ("_before", "_before_s", "_rates")

    def __init__(self) -> None:
        self._before: dict[str, int] = {}
        self._before_s = perf_counter()
        self._rates: dict[str, float] = {}

    def rates(self, counters: Mapping[str, int]) -> Mapping[str, float]:
        now_s = perf_counter()
        elapsed_s = now_s - self._before_s
        if not self._before:
            self._before, self._before_s = dict(counters), now_s
        elif elapsed_s >= RATE_WINDOW_S:
            self._rates = {
                name: round((value - self._before.get(name, value)) / elapsed_s, 1) for name, value in counters.items()
            }
            self._before, self._before_s = dict(counters), now_s
        return self._rates
