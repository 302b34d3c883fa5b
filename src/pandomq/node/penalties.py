"""How long an address that failed to log in waits for its refusal.

The first failure costs little; each further one from the same address doubles the wait, up to a limit. What is not
repeated is forgiven after a while. The table is bounded: when it is full the address that failed longest ago goes.
"""

from __future__ import annotations

from typing import Final

FIRST_WAIT_MS: Final = 250
WAIT_MS_MAX: Final = 2_000
FORGIVEN_AFTER_MS: Final = 60_000
ADDRESSES_MAX: Final = 10_000

assert FIRST_WAIT_MS <= WAIT_MS_MAX < FORGIVEN_AFTER_MS


class Penalties:
    __slots__ = ("_failures",)

    def __init__(self) -> None:
        self._failures: dict[str, tuple[int, int]] = {}
        """Address to how many in a row and when the last was; in the order of the last."""

    def failed(self, address: str, now_ms: int) -> int:
        """Counts a failure; says how many milliseconds its refusal waits."""
        count, last_ms = self._failures.pop(address, (0, now_ms))
        if now_ms - last_ms >= FORGIVEN_AFTER_MS:
            count = 0
        if len(self._failures) >= ADDRESSES_MAX:
            del self._failures[next(iter(self._failures))]
        self._failures[address] = (count + 1, now_ms)
        return min(FIRST_WAIT_MS << min(count, 16), WAIT_MS_MAX)

    def succeeded(self, address: str) -> None:
        self._failures.pop(address, None)
