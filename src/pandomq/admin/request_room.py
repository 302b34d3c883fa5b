"""Requests in progress: how many there are of each user, and the memory of their bodies and answers.

A request has its share until its answer is written. The limits of a user are lower than those of all users together, so
one user cannot take everything.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pandomq.admin import limits
from pandomq.admin.refusals import Refusal, unavailable

if TYPE_CHECKING:
    from pandomq.node.settings import NodeSettings


class RequestRoom:
    """The room for all current requests."""

    __slots__ = ("_freed", "_requests", "_settings", "_size", "_size_of_user")

    def __init__(self, settings: NodeSettings) -> None:
        self._settings = settings
        self._size = 0
        self._size_of_user: Counter[str] = Counter()
        self._requests: Counter[str] = Counter()
        self._freed = asyncio.Event()

    def change_settings(self, settings: NodeSettings) -> None:
        """Other limits apply from now on, also to requests that wait."""
        self._settings = settings
        self._freed.set()

    @contextmanager
    def request(self) -> Iterator[Share]:
        """The share of one request, which is returned at the end of the block."""
        share = Share(self)
        try:
            yield share
        finally:
            share.close()

    def enter(self, user: str) -> None:
        """Raises Refusal (429) if the user has too many requests in progress."""
        requests_max = self._settings.http_requests_per_user_max
        if requests_max and self._requests[user] >= requests_max:
            raise Refusal(
                429,
                "too_many_requests",
                f"user '{user}' has {requests_max} requests in progress, which is the limit "
                "(limits.http_requests_per_user_max): wait for an answer before the next request",
                {"connection": "close"},
            )
        self._requests[user] += 1

    def leave(self, user: str) -> None:
        _subtract(self._requests, user, 1)

    def has_room(self, user: str, size: int) -> bool:
        of_user = self._size_of_user[user] + size
        settings = self._settings
        return of_user <= settings.http_per_user_bytes_max and self._size + size <= settings.http_bytes_max

    def take(self, user: str, size: int) -> None:
        self._size += size
        self._size_of_user[user] += size

    async def wait_for(self, user: str, size: int) -> None:
        """Returns when there is room. Raises TimeoutError."""
        async with asyncio.timeout(limits.ANSWER_S_MAX):
            while not self.has_room(user, size):
                self._freed.clear()
                await self._freed.wait()

    def give_back(self, user: str, size: int) -> None:
        self._size -= size
        _subtract(self._size_of_user, user, size)
        self._freed.set()


class Share:
    """The room that one request takes."""

    __slots__ = ("_room", "_size", "_user")

    def __init__(self, room: RequestRoom) -> None:
        self._room = room
        self._user: str | None = None
        self._size = 0

    def enter(self, user: str) -> None:
        """To be called once the user is known, and before anything is taken. Raises Refusal (429)."""
        self._room.enter(user)
        self._user = user

    def take(self, size: int) -> None:
        """Raises Refusal (503) if there is no room."""
        assert self._user is not None
        if not self._room.has_room(self._user, size):
            raise _full()
        self._room.take(self._user, size)
        self._size += size

    async def wait_for(self, size: int) -> None:
        """Takes room when there is some. Raises Refusal (503)."""
        assert self._user is not None
        try:
            await self._room.wait_for(self._user, size)
        except TimeoutError:
            raise _full() from None
        self.take(size)

    def give_back(self, size: int) -> None:
        if self._user is not None:
            self._room.give_back(self._user, size)
            self._size -= size

    def close(self) -> None:
        if self._user is not None:
            self.give_back(self._size)
            self._room.leave(self._user)
            self._user = None


def _full() -> Refusal:
    refusal = unavailable("too many large requests are in progress: try again in a moment")
    refusal.headers = {"connection": "close"}
    return refusal


def _subtract(counter: Counter[str], key: str, count: int) -> None:
    counter[key] -= count
    if counter[key] <= 0:
        del counter[key]
