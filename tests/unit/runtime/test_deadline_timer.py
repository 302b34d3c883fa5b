"""The timer of the node's next deadline."""

from __future__ import annotations

import asyncio

from pandomq.runtime.deadline_timer import DeadlineTimer


def test_the_timer_fires_again_after_an_exception() -> None:
    rung: list[int] = []
    failed: list[Exception] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda *_: None)

        def next_deadline_ms() -> int:
            if len(rung) == 1 and not failed:
                raise ValueError("no deadline")
            return 0

        def ring() -> None:
            rung.append(1)
            if len(rung) == 2:
                raise ValueError("no ring")

        timer = DeadlineTimer(next_deadline_ms, lambda: 0, ring, failed.append)
        timer.set()
        while len(rung) < 4:
            await asyncio.sleep(0.01)
        timer.cancel()

    asyncio.run(asyncio.wait_for(run(), 10))
    assert [type(error) for error in failed] == [ValueError]
