"""The server's loop around a node: what it waits for, and its end."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pandomq.node.output import Output
from pandomq.runtime.clock import Clock
from pandomq.runtime.disk.disk import Disk
from pandomq.runtime.server import Server

BUSY_S = 15.0
FAR_MS = 10**15


class NodeDouble:
    """It is `following` with the step after two completions."""

    def __init__(self) -> None:
        self.views = SimpleNamespace()
        self.broker = SimpleNamespace(tracing=SimpleNamespace(in_ms=lambda now_us: now_us // 1000))
        self.next_deadline_ms = FAR_MS
        self.ready = True
        self.following = False
        self.completed = 0

    def disk_completed(self, completions: object, now_ms: int) -> None:
        self.completed += 1

    def step(self, now_ms: int, monotonic_ms: int, *, amid_pass: bool) -> Output:
        self.following = self.completed == 2
        return Output([], [], False)


@pytest.mark.parametrize("turns", range(8))
def test_a_start_ends_whenever_the_last_completion_comes(turns: int) -> None:
    """The loop makes this many turns between the last two completions."""

    async def start() -> None:
        node = NodeDouble()
        server = Server(lambda: cast(Any, node), Clock())
        disk = cast(Disk, SimpleNamespace(fd=-1, take_completions=list))
        opening = asyncio.ensure_future(server.open())
        for _ in range(5):
            await asyncio.sleep(0)
        server._completed(disk)
        for _ in range(turns):
            await asyncio.sleep(0)
        server._completed(disk)
        try:
            await asyncio.wait_for(opening, BUSY_S)
        finally:
            server._timer.cancel()
            server._passwords.close()

    asyncio.run(start())
