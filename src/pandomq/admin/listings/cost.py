"""Measures the cost of a long task for the loop: processor time, independent of other load on the machine."""

from __future__ import annotations

import asyncio
from time import thread_time


class CostMeter:
    """Counts from the start, without the pauses."""

    __slots__ = ("_begun_s", "_cost_s")

    def __init__(self) -> None:
        self._cost_s = 0.0
        self._begun_s = thread_time()

    async def pause(self) -> None:
        """Gives the loop a turn."""
        self._cost_s += thread_time() - self._begun_s
        await asyncio.sleep(0)
        self._begun_s = thread_time()

    def stop(self) -> float:
        return self._cost_s + thread_time() - self._begun_s
