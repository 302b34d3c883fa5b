"""A model of a table whose number of rows and whose age of rows are bounded: which rows a broker certainly has, and
which it has certainly evicted.

A row is a name. The broker keeps the rows that were noted last. A client that waits for each answer knows the order in
which its rows were noted. A request without an answer may note its row at any time from then on, for as long as brokers
may hold the request back.
"""

from __future__ import annotations

from typing import Final

import msgspec

HELD_BACK_MS: Final = 8_000
"""A request of a lost connection takes effect within this time of the world, or never."""
SLACK_MS: Final = 500
"""The largest error of the client's estimate of a row's time."""


class _Row(msgspec.Struct):
    first: int
    """The earliest request that may have noted the row last."""
    last: int
    """The latest request that may have noted the row last."""
    first_ms: int
    """The cluster's time of the earliest of these requests."""
    last_ms: int
    doubtful_until_ms: int = -1
    """The end of the time of the world in which a request without an answer may note the row."""


class MemoryModel:
    def __init__(self, count_max: int, age_ms: int) -> None:
        self._count_max = count_max
        self._age_ms = age_ms
        self._rows: dict[str, _Row] = {}
        self._requests = 0
        self._latest: dict[str, int] = {}
        """The cluster's time before the latest request that noted a row."""

    def noted(self, name: str, sent_ms: int, answered_ms: int) -> None:
        """A request that has noted the row was answered; both times are the cluster's."""
        self._requests += 1
        self._rows[name] = _Row(self._requests, self._requests, sent_ms, answered_ms)
        self._latest[name] = sent_ms

    def maybe_noted(self, name: str, answered_ms: int) -> None:
        """A request that may have noted the row again was answered."""
        self._requests += 1
        row = self._rows[name]
        row.last, row.last_ms = self._requests, answered_ms

    def doubt(self, name: str, world_ms: int) -> None:
        """A request that may note the row was not answered. The client does not use the name again."""
        self._requests += 1
        row = self._rows.setdefault(name, _Row(0, 0, 0, 0))
        row.doubtful_until_ms = world_ms + HELD_BACK_MS

    def remembers(self, name: str, now_ms: int, world_ms: int) -> bool:
        """Whether the broker certainly has the row, at a time of the cluster that is not later than `now_ms`."""
        row = self._rows.get(name)
        if row is None or now_ms > row.first_ms + self._age_ms - SLACK_MS:
            return False
        newer = sum(other is not row and self._may_be_newer(other, row, world_ms) for other in self._rows.values())
        return newer < self._count_max

    def _may_be_newer(self, other: _Row, row: _Row, world_ms: int) -> bool:
        if other.doubtful_until_ms >= 0:
            if world_ms <= other.doubtful_until_ms:
                return True
            other.last, other.doubtful_until_ms = self._requests, -1
        return other.last > row.first

    def has_forgotten(self, name: str) -> bool:
        """Whether the broker has certainly evicted the row."""
        row = self._rows[name]
        if row.doubtful_until_ms >= 0:
            return False
        others = {other: one for other, one in self._rows.items() if other != name}
        if sum(one.first > row.last for one in others.values()) >= self._count_max:
            return True
        return any(self._latest.get(other, 0) > row.last_ms + self._age_ms + SLACK_MS for other in others)
