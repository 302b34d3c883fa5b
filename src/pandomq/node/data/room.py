"""Memory that many share: so much of it there is, and who finds none left waits for its turn."""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Room(Generic[T]):
    __slots__ = ("_bytes_max", "_waiting", "taken_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.taken_bytes = 0
        self._waiting: deque[tuple[T, int]] = deque()

    def take(self, who: T, size_bytes: int) -> bool:
        """False: it stands in line, and `admitted` will name it."""
        if self._waiting or self.taken_bytes + size_bytes > self._bytes_max:
            self._waiting.append((who, size_bytes))
            return False
        self.taken_bytes += size_bytes
        return True

    def give_back(self, size_bytes: int) -> None:
        self.taken_bytes -= size_bytes
        assert self.taken_bytes >= 0

    def leave(self, who: T) -> None:
        """It waits no longer, if it did."""
        self._waiting = deque(item for item in self._waiting if item[0] is not who)

    def admitted(self) -> list[T]:
        """Those for whom there is room by now; what they wanted is theirs."""
        admitted: list[T] = []
        while self._waiting and self.taken_bytes + self._waiting[0][1] <= self._bytes_max:
            who, size_bytes = self._waiting.popleft()
            self.taken_bytes += size_bytes
            admitted.append(who)
        return admitted

    def __bool__(self) -> bool:
        """Somebody waits."""
        return bool(self._waiting)
