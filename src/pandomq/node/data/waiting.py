"""Clients that wait for a stream to grow: examined once per step, and answered at the latest when their time is
over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pandomq.data_form import Fields
from pandomq.kernel import NEVER_MS

if TYPE_CHECKING:
    from pandomq.node.data.session import DataSession, Responder


class WaitingRead(NamedTuple):
    client: DataSession
    fields: Fields
    """The request; the stream may have been deleted or replaced by then."""
    beyond: int
    until_ms: int
    answer: Responder


class Watches:
    __slots__ = ("_watches",)

    def __init__(self) -> None:
        self._watches: list[WaitingRead] = []

    def add(self, watch: WaitingRead) -> None:
        self._watches.append(watch)

    def look(self, now_ms: int, settle: Callable[[WaitingRead, bool], bool]) -> None:
        """`settle` is called with each client, and whether its time is over; True: it has been answered."""
        if self._watches:
            self._watches = [
                watch
                for watch in self._watches
                if not watch.client.gone and not settle(watch, watch.until_ms <= now_ms)
            ]

    @property
    def next_ms(self) -> int:
        return min((watch.until_ms for watch in self._watches), default=NEVER_MS)
