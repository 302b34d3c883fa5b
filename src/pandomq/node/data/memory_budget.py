"""Memory that many clients share, with a limit in total and a limit for one user; a client that finds no room waits.

Clients that wait because others have all of it are served in order. A client that waits because of its own user delays
no other user.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class _Waiting(NamedTuple, Generic[T]):
    who: T
    user: str
    size_bytes: int


class MemoryBudget(Generic[T]):
    __slots__ = ("_bytes_max", "_of_users", "_waiting", "of_user_max", "taken_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.of_user_max = bytes_max
        """The limit for one user; what is taken already stays."""
        self.taken_bytes = 0
        self._of_users: dict[str, int] = {}
        self._waiting: deque[_Waiting[T]] = deque()

    def take(self, who: T, user: str, size_bytes: int) -> bool:
        """False: it waits in line, and `admitted` will return it."""
        is_next = not any(self._fits_user(one.user, one.size_bytes) for one in self._waiting)
        if is_next and self._fits_user(user, size_bytes) and self._fits(size_bytes):
            self._grant(user, size_bytes)
            return True
        self._waiting.append(_Waiting(who, user, size_bytes))
        return False

    def give_back(self, user: str, size_bytes: int) -> None:
        if not size_bytes:
            return
        self.taken_bytes -= size_bytes
        self._of_users[user] -= size_bytes
        assert self.taken_bytes >= 0
        assert self._of_users[user] >= 0
        if not self._of_users[user]:
            del self._of_users[user]

    def leave(self, who: T) -> None:
        """Removes the client from the line, if it waits there."""
        self._waiting = deque(one for one in self._waiting if one.who is not who)

    def admitted(self) -> list[T]:
        """The waiting clients for which there is room by now; the room that they requested is reserved."""
        admitted: list[T] = []
        still: deque[_Waiting[T]] = deque()
        while self._waiting:
            one = self._waiting.popleft()
            if not self._fits_user(one.user, one.size_bytes):
                still.append(one)
            elif self._fits(one.size_bytes):
                self._grant(one.user, one.size_bytes)
                admitted.append(one.who)
            else:
                self._waiting.appendleft(one)
                break
        self._waiting.extendleft(reversed(still))
        return admitted

    def _fits(self, size_bytes: int) -> bool:
        return self.taken_bytes + size_bytes <= self._bytes_max

    def _fits_user(self, user: str, size_bytes: int) -> bool:
        """A user that has nothing yet may have one request, however large."""
        taken_bytes = self._of_users.get(user, 0)
        return not taken_bytes or taken_bytes + size_bytes <= self.of_user_max

    def _grant(self, user: str, size_bytes: int) -> None:
        self.taken_bytes += size_bytes
        self._of_users[user] = self._of_users.get(user, 0) + size_bytes

    def __bool__(self) -> bool:
        """A client waits."""
        return bool(self._waiting)
