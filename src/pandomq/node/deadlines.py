"""When to look at which link again, at a cost that does not grow with the number of idle links.

Heartbeats and handshakes need no exact time: links wait in buckets of a quarter of a second, and only the buckets
that are due are opened. A link is in one bucket at a time; links that went away in between are dropped when their
bucket is opened.
"""

from typing import Final, Generic, TypeVar

BUCKET_MS: Final = 250
T = TypeVar("T")


class Deadlines(Generic[T]):
    __slots__ = ("_buckets", "_opened")

    def __init__(self, now_ms: int) -> None:
        self._buckets: dict[int, list[T]] = {}
        self._opened = now_ms // BUCKET_MS

    def put(self, item: T, due_ms: int) -> None:
        # Rounded up, so that what is due has come when its bucket is opened.
        bucket = max(-(-due_ms // BUCKET_MS), self._opened + 1)
        self._buckets.setdefault(bucket, []).append(item)

    def take_due(self, now_ms: int) -> list[T]:
        last = now_ms // BUCKET_MS
        if last <= self._opened:
            return []
        due: list[T] = []
        if last - self._opened > len(self._buckets):
            # A long pause of the process: fewer buckets than seconds.
            for bucket in sorted(bucket for bucket in self._buckets if bucket <= last):
                due.extend(self._buckets.pop(bucket))
        else:
            for bucket in range(self._opened + 1, last + 1):
                due.extend(self._buckets.pop(bucket, ()))
        self._opened = last
        return due

    @property
    def next_ms(self) -> int:
        """When the next bucket can be opened, whether or not anything is in it."""
        return (self._opened + 1) * BUCKET_MS

    def __len__(self) -> int:
        return sum(map(len, self._buckets.values()))
