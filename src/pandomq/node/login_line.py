"""Whose password is held against its hash next.

One at a time, because a hash is slow on purpose. Addresses take turns, and so do the users that an address tries, so
that a flood of guesses waits behind itself. Who failed rests: the next guess at the same user from the same address is
not looked at before the last one has been refused.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

_Key = tuple[str, str]


class LoginLine(Generic[T]):
    __slots__ = ("_busy", "_ready", "_resting")

    def __init__(self) -> None:
        self._busy = False
        self._ready: dict[str, dict[str, deque[T]]] = {}
        """By address, then user; who is first in its dict is next."""
        self._resting: dict[_Key, deque[T]] = {}
        """Those behind a user who rests."""

    def put(self, address: str, user: str, item: T) -> None:
        resting = self._resting.get((address, user))
        if resting is not None:
            resting.append(item)
        else:
            self._ready.setdefault(address, {}).setdefault(user, deque()).append(item)

    def take(self) -> T | None:
        """The next one, until `answered`; None if nobody waits or one is being looked at."""
        if self._busy or not self._ready:
            return None
        address = next(iter(self._ready))
        users = self._ready.pop(address)
        user = next(iter(users))
        line = users.pop(user)
        item = line.popleft()
        # Behind all others of its kind. One answer at a time, so nobody is taken twice before the first is answered.
        if line:
            users[user] = line
        if users:
            self._ready[address] = users
        self._busy = True
        return item

    def answered(self, address: str, user: str, *, rests: bool) -> None:
        self._busy = False
        if rests:
            users = self._ready.get(address, {})
            self._resting[address, user] = users.pop(user, deque())
            if not users:
                self._ready.pop(address, None)

    def rested(self, address: str, user: str) -> None:
        """To be called for everybody who was refused, in line or not."""
        line = self._resting.pop((address, user), None)
        if line:
            self._ready.setdefault(address, {})[user] = line
