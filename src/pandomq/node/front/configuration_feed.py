"""Passes each change of shared state to the front, once it is committed and has taken effect in the broker itself.

On a root that is when the entry in which it was proposed is committed; on other brokers when it is applied.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.cluster.proxy.front import Front


class ConfigurationFeed:
    __slots__ = ("_broker", "_front", "_sealed", "_unsealed", "changed_index")

    def __init__(self, broker: Broker, front: Front) -> None:
        self._broker = broker
        self._front = front
        self._unsealed: list[bytes] = []
        self._sealed: deque[tuple[int, list[bytes]]] = deque()
        self.changed_index = 0
        """The front knows all changes up to this entry; entries after it, up to the last one that was passed on, change
        nothing."""
        broker.on_command = self._hear

    def begin(self, index: int) -> None:
        """Everything that the broker has is committed, and its log is open."""
        self._unsealed.clear()
        self._front.begin(self._broker.configuration(), index)
        self.changed_index = index

    def sealed(self, index: int) -> None:
        """The changes that this broker made itself are in that entry."""
        if self._unsealed:
            self._sealed.append((index, self._take()))

    def _hear(self, command: bytes) -> None:
        self._unsealed.append(command)

    def _take(self) -> list[bytes]:
        unsealed, self._unsealed = self._unsealed, []
        return unsealed

    def applied(self, index: int) -> None:
        """All changes since the last call are from entries up to this one, which are committed."""
        if self._unsealed:
            self._follow(index, self._take())

    def committed(self, index: int) -> None:
        """To be called on a root when the log is committed up to this entry."""
        while self._sealed and self._sealed[0][0] <= index:
            self._follow(*self._sealed.popleft())

    def _follow(self, index: int, commands: list[bytes]) -> None:
        self._front.follow(index, commands)
        self.changed_index = index
