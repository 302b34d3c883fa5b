"""The order in which passwords are checked against their hashes.

Passwords are checked one at a time, because a hash is slow on purpose. There are three lines. A login for a user that
exists, and that has no recent failure from the same network, goes into one of two *first* lines, the newest ahead of
the others: however many bad logins wait, a good one waits for the hash that is being made and for its own. All others
wait in the *common* line, in which networks take turns, and so do the users that a network tries, so that a flood of
guesses waits behind itself.

The second of the first lines is for users that have failed lately from other networks: guesses at one user that keep
coming from ever more networks must not keep the first logins of all other users waiting. It takes turns with the common
line, so that no login there waits for the end of such a flood.

A wrong password that came by a first line goes through the common line before it is refused: so the time reveals
nothing about which users exist. After a failure the pair of network and user pauses: its next guess is not checked
before the last one has been refused.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

_Key = tuple[str, str]


class LoginLine(Generic[T]):
    __slots__ = ("_busy", "_common", "_common_is_next", "_first", "_guessed", "_resting")

    def __init__(self) -> None:
        self._busy = False
        self._first: dict[_Key, deque[T]] = {}
        """By network and user; the last of the dict is next."""
        self._guessed: dict[_Key, deque[T]] = {}
        """The same of users that have failed lately from other networks."""
        self._common_is_next = False
        self._common: dict[str, dict[str, deque[T]]] = {}
        """By network, then user; the first of each dict is next."""
        self._resting: dict[_Key, deque[T]] = {}
        """Attempts that wait behind a pair that pauses."""

    def put(self, network: str, user: str, item: T, *, first: bool = False, guessed: bool = False) -> None:
        """`first`: this user has no recent failure from there. `guessed`: but it has from elsewhere."""
        key = (network, user)
        if key in self._resting:
            self._resting[key].append(item)
        elif key in self._first:
            # It comes behind earlier attempts of the same user, so that they stay in order.
            self._first[key].append(item)
        elif key in self._guessed:
            self._guessed[key].append(item)
        elif first and user not in self._common.get(network, ()):
            (self._guessed if guessed else self._first)[key] = deque((item,))
        else:
            self._wait(network, user, item)

    def put_refused(self, network: str, user: str, item: T) -> None:
        """Puts an attempt that came by a first line, and is to be refused when the common line has reached it."""
        self._wait(network, user, item)

    def take(self) -> T | None:
        """The next one, until `answered`; None if none waits or one is being checked."""
        if self._busy:
            return None
        if self._first:
            item = _take_newest(self._first)
        elif self._guessed and not (self._common and self._common_is_next):
            self._common_is_next = True
            item = _take_newest(self._guessed)
        elif self._common:
            self._common_is_next = False
            item = self._take_common()
        else:
            return None
        self._busy = True
        return item

    def _take_common(self) -> T:
        network = next(iter(self._common))
        users = self._common.pop(network)
        user = next(iter(users))
        items = users.pop(user)
        item = items.popleft()
        # It comes behind all others of its kind. One answer at a time, so none is taken twice before the first is
        # answered.
        if items:
            users[user] = items
        if users:
            self._common[network] = users
        return item

    def answered(self, network: str, user: str, *, rests: bool) -> None:
        self._busy = False
        if rests:
            users = self._common.get(network, {})
            behind = self._first.pop((network, user), None) or self._guessed.pop((network, user), deque())
            behind.extend(users.pop(user, ()))
            self._resting[network, user] = behind
            if not users:
                self._common.pop(network, None)
            for key in [key for key in self._first if key[1] == user]:
                self._guessed[key] = self._first.pop(key)

    def rested(self, network: str, user: str) -> None:
        """To be called when the refusal for which the pair pauses is sent."""
        items = self._resting.pop((network, user), None)
        if items:
            self._common.setdefault(network, {})[user] = items

    def _wait(self, network: str, user: str, item: T) -> None:
        self._common.setdefault(network, {}).setdefault(user, deque()).append(item)


def _take_newest(line: dict[_Key, deque[T]]) -> T:
    key = next(reversed(line))
    items = line[key]
    item = items.popleft()
    if not items:
        del line[key]
    return item
