"""A result that is built in slices, and shared by all requests until it is too old.

Building it takes the broker's loop some time. So it is built again only when it is older than its cost allows, a fixed
fraction of the time; requests in the meantime, or during the build, get the same result.
"""

from __future__ import annotations

import asyncio
from time import perf_counter, thread_time

from pandomq.admin import limits


class CostMeter:
    """Measures the cost of a long task for the loop: processor time from the start, without the pauses, and independent
    of other load on the machine."""

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


class SharedBuild:
    def __init__(self) -> None:
        self._made_s = 0.0
        self._cost_s = 0.0
        self._changed = True
        self._making: asyncio.Task[None] | None = None
        self._reading = False
        """The build has begun, and will not show later changes."""

    async def build(self, meter: CostMeter) -> None:
        """Builds the result, and pauses with the meter between slices."""
        raise NotImplementedError

    def changed(self) -> None:
        """An object was changed here: the next request sees it."""
        self._changed = True

    async def refresh(self) -> None:
        """Returns when the result is recent enough."""
        if self._making is not None and self._reading and self._changed:
            # The current build began before the change.
            await asyncio.shield(self._making)
        if self._making is None and not self._is_fresh(perf_counter()):
            self._making = asyncio.create_task(self._make())
        if self._making is not None:
            # The first client may disconnect; the others still wait for it.
            await asyncio.shield(self._making)

    def _is_fresh(self, now_s: float) -> bool:
        if self._changed:
            return False
        return now_s - self._made_s < min(self._cost_s * limits.LISTING_COST_SHARE, limits.LISTING_FRESH_S_MAX)

    def pause_s(self, made_s: float, cost_s: float) -> float:
        """How long a build waits that a change requires soon after the last one, which was made then and cost so
        much."""
        return 0.0

    async def _make(self) -> None:
        try:
            pause_s = self.pause_s(self._made_s, self._cost_s)
            if pause_s > 0:
                await asyncio.sleep(pause_s)
            self._changed, self._reading = False, True
            meter = CostMeter()
            await self.build(meter)
            self._made_s = perf_counter()
            self._cost_s = meter.stop()
        finally:
            self._making, self._reading = None, False
