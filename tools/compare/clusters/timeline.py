"""The times of confirms: pauses without one, and their number between two moments.

Pure: the caller passes the moments. A read with many confirms is one moment.
"""

from bisect import bisect_left, bisect_right
from itertools import pairwise
from typing import NamedTuple


class Pause(NamedTuple):
    begun_ns: int
    ended_ns: int
    over: bool
    """False: no confirm came until the end of the examined time."""

    @property
    def seconds(self) -> float:
        return (self.ended_ns - self.begun_ns) / 1e9


class Timeline:
    def __init__(self, break_ns_max: int) -> None:
        """Confirms flow as long as none is farther from the next than `break_ns_max`."""
        self._break_ns_max = break_ns_max
        self._flow_begun_ns = 0
        self._moments_ns: list[int] = []
        self._totals: list[int] = []
        """Confirms up to and including each moment."""
        self.story: list[tuple[int, str]] = []
        """Other events, for people."""

    @property
    def confirmed(self) -> int:
        return self._totals[-1] if self._totals else 0

    @property
    def last_ns(self) -> int | None:
        """When the last confirm came."""
        return self._moments_ns[-1] if self._moments_ns else None

    def confirm(self, now_ns: int, count: int) -> None:
        """Moments never decrease."""
        last_ns = self.last_ns
        assert last_ns is None or now_ns >= last_ns
        if last_ns is None or now_ns - last_ns > self._break_ns_max:
            self._flow_begun_ns = now_ns
        self._totals.append(self.confirmed + count)
        self._moments_ns.append(now_ns)

    def tell(self, now_ns: int, what: str) -> None:
        self.story.append((now_ns, what))

    def confirmed_between(self, since_ns: int, until_ns: int) -> int:
        """After `since_ns`, and up to `until_ns`."""
        return self._upto(until_ns) - self._upto(since_ns)

    def _upto(self, moment_ns: int) -> int:
        place = bisect_right(self._moments_ns, moment_ns)
        return self._totals[place - 1] if place else 0

    def longest_pause(self, since_ns: int, until_ns: int) -> Pause:
        """The longest time without a confirm that had not ended by `since_ns`, and had begun by `until_ns`.

        It begins at the confirm before it: a fault between two confirms counts from the earlier one.
        """
        first = max(bisect_left(self._moments_ns, since_ns) - 1, 0)
        inside = self._moments_ns[first : bisect_right(self._moments_ns, until_ns)]
        if not inside or inside[0] > since_ns:
            inside.insert(0, since_ns)
        pauses = [Pause(begun, ended, True) for begun, ended in pairwise(inside)]
        pauses.append(Pause(inside[-1], max(until_ns, inside[-1]), False))
        return max(pauses, key=lambda pause: pause.ended_ns - pause.begun_ns)

    def flowing_since(self, now_ns: int) -> int | None:
        """The time since when confirms have come without a break; None if there is a break now."""
        last_ns = self.last_ns
        return None if last_ns is None or now_ns - last_ns > self._break_ns_max else self._flow_begun_ns

    def told_since(self, since_ns: int) -> list[str]:
        """The events after a moment, in seconds from it."""
        return [f"{(at_ns - since_ns) / 1e9:+.3f} s {what}" for at_ns, what in self.story if at_ns >= since_ns]
