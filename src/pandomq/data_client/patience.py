"""How long to retry, and how long to wait before the next attempt."""

from __future__ import annotations

import random
import time
from typing import Final

FIRST_PAUSE_S: Final = 0.02
PAUSE_S_MAX: Final = 1.0
SILENCE_S_MAX: Final = 15.0
"""A broker that sends nothing for this time is replaced by another, or asked again."""
CONNECT_S_MAX: Final = 5.0


class Patience:
    """The time for one request, from its beginning; progress restarts it."""

    __slots__ = ("_ends_s", "_pause_s", "_timeout_s")

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self.renew()

    def renew(self) -> None:
        self._ends_s = time.monotonic() + self._timeout_s
        self._pause_s = FIRST_PAUSE_S

    @property
    def left_s(self) -> float:
        return max(0.0, self._ends_s - time.monotonic())

    @property
    def over(self) -> bool:
        return self.left_s <= 0.0

    @property
    def silence_s(self) -> float:
        return max(0.05, min(SILENCE_S_MAX, self.left_s))

    @property
    def connect_s(self) -> float:
        return max(0.05, min(CONNECT_S_MAX, self.left_s))

    def pause(self) -> None:
        """Longer each time. Many clients lose the same broker at once: they must not all come back at the same
        moment."""
        time.sleep(min(self.left_s, self._pause_s * random.uniform(0.5, 1.0)))
        self._pause_s = min(PAUSE_S_MAX, 2 * self._pause_s)
