"""The timer of the node's next deadline: it keeps firing, whatever the node raises."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

AFTER_FAILURE_S: Final = 0.1
"""Time until the next firing, if the node failed to return its deadline."""


class DeadlineTimer:
    __slots__ = ("_failed", "_handle", "_loop", "_next_deadline_ms", "_now_ms", "_ring", "due_ms")

    def __init__(
        self,
        next_deadline_ms: Callable[[], int],
        now_ms: Callable[[], int],
        ring: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        """Calls `failed` with the exception that `next_deadline_ms` raised."""
        self._loop = asyncio.get_running_loop()
        self._next_deadline_ms = next_deadline_ms
        self._now_ms = now_ms
        self._ring = ring
        self._failed = failed
        self.due_ms = 0
        """The time it is set for. It has to be set again for an earlier deadline; a later one is found when the timer
        fires."""
        self._handle: asyncio.TimerHandle | None = None

    def set(self) -> None:
        """Sets it for the current deadline."""
        self.cancel()
        delay_s = AFTER_FAILURE_S
        try:
            self.due_ms = self._next_deadline_ms()
            delay_s = max(0, self.due_ms - self._now_ms()) / 1000
        except Exception as error:
            self._failed(error)
        self._handle = self._loop.call_later(delay_s, self._rung)

    def cancel(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _rung(self) -> None:
        try:
            self._ring()
        finally:
            self.set()
