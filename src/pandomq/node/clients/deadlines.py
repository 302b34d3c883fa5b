"""The times at which links are checked again, at a cost that does not grow with the number of idle links.

Heartbeats and handshakes need no exact time: links wait in buckets of a quarter of a second, and only the buckets that
are due are opened. A link is in one bucket at a time, the one that it was put in last; links that were closed in
between are dropped when their bucket is opened.
"""

from typing import Final, Generic, TypeVar

BUCKET_MS: Final = 250
T = TypeVar("T")


class Deadlines(Generic[T]):
    __slots__ = ("_bucket_of", "_buckets", "_opened")

    def __init__(self, now_ms: int) -> None:
        self._buckets: dict[int, list[T]] = {}
        self._bucket_of: dict[int, int] = {}
        """The bucket in which an item counts, by its id. Other buckets may still have the item, since before its
        deadline moved."""
        self._opened = now_ms // BUCKET_MS

    def put(self, item: T, due_ms: int) -> None:
        # Rounded up, so that the deadline has passed when its bucket is opened.
        bucket = max(-(-due_ms // BUCKET_MS), self._opened + 1)
        if self._bucket_of.get(id(item)) != bucket:
            self._bucket_of[id(item)] = bucket
            self._buckets.setdefault(bucket, []).append(item)

    def take_due(self, now_ms: int) -> list[T]:
        last = now_ms // BUCKET_MS
        if last <= self._opened:
            return []
        due: list[T] = []
        if last - self._opened > len(self._buckets):
            # After a long pause of the process there are fewer buckets than seconds.
            for bucket in sorted(bucket for bucket in self._buckets if bucket <= last):
                self._open(bucket, due)
        else:
            for bucket in range(self._opened + 1, last + 1):
                self._open(bucket, due)
        self._opened = last
        return due

    def _open(self, bucket: int, due: list[T]) -> None:
        for item in self._buckets.pop(bucket, ()):
            if self._bucket_of.get(id(item)) == bucket:
                del self._bucket_of[id(item)]
                due.append(item)

    @property
    def next_ms(self) -> int:
        """The time at which the next bucket can be opened, whether or not anything is in it."""
        return (self._opened + 1) * BUCKET_MS

    def __len__(self) -> int:
        return len(self._bucket_of)
