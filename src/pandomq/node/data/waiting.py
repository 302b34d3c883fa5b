"""Those who wait for a stream to grow: looked at once a step, and answered at the latest when their time is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from pandomq.data_form import Fields
from pandomq.kernel import NEVER_MS

if TYPE_CHECKING:
    from pandomq.node.data.client import Answer, DataClient


class Watch(NamedTuple):
    client: DataClient
    fields: Fields
    """What it asked; the stream may be another one by then, or gone."""
    beyond: int
    until_ms: int
    answer: Answer


class Watches:
    __slots__ = ("_watches",)

    def __init__(self) -> None:
        self._watches: list[Watch] = []

    def add(self, watch: Watch) -> None:
        self._watches.append(watch)

    def look(self, now_ms: int, settle: Callable[[Watch, bool], bool]) -> None:
        """`settle` is told of each, and whether its time is over; True: it has been answered."""
        if self._watches:
            self._watches = [
                watch
                for watch in self._watches
                if not watch.client.gone and not settle(watch, watch.until_ms <= now_ms)
            ]

    @property
    def next_ms(self) -> int:
        return min((watch.until_ms for watch in self._watches), default=NEVER_MS)
