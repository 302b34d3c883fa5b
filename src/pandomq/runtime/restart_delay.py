"""How long a broker waits before it restarts its state, if several runs in a row end by an unexpected exception."""

from __future__ import annotations

from typing import Final

PAUSE_S: Final = 0.25
"""Pause before the second run in a row that follows an exception; each further one waits twice as long."""
PAUSE_S_MAX: Final = 5.0
FORGOTTEN_S: Final = 60.0
"""A run that lasted longer than this starts the count again."""


class RestartDelay:
    __slots__ = ("_count", "_last_s")

    def __init__(self) -> None:
        self._count = 0
        self._last_s = float("-inf")

    def pause_s(self, now_s: float) -> float:
        """A run has ended by an exception now."""
        self._count = self._count + 1 if now_s - self._last_s < FORGOTTEN_S else 0
        self._last_s = now_s
        return min(PAUSE_S_MAX, PAUSE_S * 2.0 ** (self._count - 1)) if self._count else 0.0
