"""Milliseconds that never decrease: the wall clock's at the start, the monotonic clock's from then on.

The cluster's time, `now_ms`, may be set forward; `monotonic_ms`, which leases use, may not.

A jump of the wall clock makes nothing expire; a time in a header (x-death) is off by the jumps since the start.
"""

import time


class Clock:
    __slots__ = ("_offset_ns",)

    def __init__(self) -> None:
        self._offset_ns = time.time_ns() - time.monotonic_ns()

    def go_on_from(self, last_ms: int) -> None:
        """The time was this late once: it cannot be earlier now, whatever the wall clock shows."""
        self._offset_ns += max(0, last_ms - self.now_ms()) * 1_000_000

    @staticmethod
    def monotonic_ms() -> int:
        return time.monotonic_ns() // 1_000_000

    def now_ms(self) -> int:
        return self.now_us() // 1000

    def now_us(self) -> int:
        return (time.monotonic_ns() + self._offset_ns) // 1000
