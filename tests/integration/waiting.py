"""Waits for conditions, never for time: every wait here ends as soon as its condition is true."""

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
"""The pause between two checks grows with the time waited: a check may be a request to three brokers, which slows them
down."""


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
    """Processes a blocking pika connection until the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come true within {PATIENCE_S} s"
        connection.process_data_events(time_limit=0.02)


def barrier(channel: BlockingChannel, queue: str) -> None:
    """Returns once all messages that the queue has sent to this channel have arrived, to check that it did not send too
    many."""
    channel.queue_declare(queue, passive=True)
    channel.connection.process_data_events(time_limit=0)
