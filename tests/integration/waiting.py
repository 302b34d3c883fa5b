"""Waiting for conditions, never for time: every wait here ends as soon as what it waits for is true."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel

PATIENCE_S = 40.0
POLL_S = 0.01
POLL_S_MAX = 0.05
POLL_PART = 0.1
"""Who has waited long waits a little longer between two looks: a look may be a question to three brokers, which are
slowed down by it."""


def wait_until(condition: Callable[[], object], what: str = "the condition", patience_s: float = PATIENCE_S) -> None:
    begin = time.monotonic()
    while not condition():
        waited_s = time.monotonic() - begin
        assert waited_s < patience_s, f"{what} did not come true within {patience_s} s"
        time.sleep(min(max(POLL_S, waited_s * POLL_PART), POLL_S_MAX))


async def wait_until_async(
    condition: Callable[[], object], what: str = "the condition", patience_s: float = PATIENCE_S
) -> None:
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true within {patience_s} s"
        await asyncio.sleep(POLL_S)


def pump(connection: Any, condition: Callable[[], object], what: str = "the condition") -> None:
    """Lets a blocking pika connection work until the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true within {PATIENCE_S} s"
        connection.process_data_events(time_limit=0.02)


def barrier(channel: BlockingChannel, queue: str) -> None:
    """Returns once what the queue has sent to this channel has arrived here: for looking whether it sent too much."""
    channel.queue_declare(queue, passive=True)
    channel.connection.process_data_events(time_limit=0)
