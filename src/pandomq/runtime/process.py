"""One broker as a process: limits of the system, signals, start and end."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path
from random import SystemRandom
from typing import Final

import uvloop

from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings
from pandomq.runtime.clock import Clock
from pandomq.runtime.listen import Address
from pandomq.runtime.server import Server

log = logging.getLogger("pandomq")

GC_THRESHOLDS: Final = (50_000, 50, 100)
"""Rare collections: messages are freed by count, cycles arise with connections only."""


def run(settings: NodeSettings, listen: Address, data: Path, on_ready: Callable[[list[Address]], None]) -> None:
    """Runs a broker until SIGTERM or SIGINT. Raises OSError if it cannot listen or write its directory."""
    data.mkdir(parents=True, exist_ok=True)
    pid_file = data / "pid"
    pid_file.write_text(f"{os.getpid()}\n")
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings, listen, on_ready))
    finally:
        pid_file.unlink(missing_ok=True)


async def _serve(settings: NodeSettings, listen: Address, on_ready: Callable[[list[Address]], None]) -> None:
    _allow_many_sockets()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    clock = Clock()
    server = Server(Node(settings, SystemRandom(), clock.now_ms()), clock)
    bound = await server.listen(listen)
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    on_ready(bound)
    await stop.wait()
    log.info("stopping: telling clients")
    await server.shut_down()


def _allow_many_sockets() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def machine_memory_bytes() -> int:
    """The machine's memory, or the share of it that the control group allows."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        allowed = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        return total
    return min(total, int(allowed)) if allowed.isdigit() else total
