"""Answers in memory that the operating system has not taken yet: bounded in total, and half of that for one user.

So a user whose clients do not read their answers delays only its own requests.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.node.data.session import DataSession


class Outgoing:
    __slots__ = ("_bytes_max", "_of_users", "_resting", "size_bytes")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self.size_bytes = 0
        self._of_users: dict[str, int] = {}
        self._resting: dict[str, deque[DataSession]] = {}
        """Clients with requests that wait until their user has less."""

    @property
    def is_full(self) -> bool:
        return self.size_bytes >= self._bytes_max

    def has_room(self, client: DataSession) -> bool:
        """False: `remove` will return the client when its user has taken enough."""
        if self._of_users.get(client.user, 0) < self._bytes_max // 2:
            return True
        self._resting.setdefault(client.user, deque()).append(client)
        return False

    def add(self, user: str, size_bytes: int) -> None:
        self.size_bytes += size_bytes
        self._of_users[user] = self._of_users.get(user, 0) + size_bytes

    def remove(self, user: str, size_bytes: int) -> deque[DataSession]:
        """Returns the clients that may continue as a result."""
        self.size_bytes -= size_bytes
        left = self._of_users.get(user, 0) - size_bytes
        assert left >= 0
        if left:
            self._of_users[user] = left
        else:
            self._of_users.pop(user, None)
        return self._resting.pop(user, deque()) if left < self._bytes_max // 2 else deque()
