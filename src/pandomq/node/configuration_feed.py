"""Tells the front of each change of what is shared, once it is committed and has taken effect in the broker itself.

On a root that is when the log says that the entry is committed in which it was proposed; elsewhere when it is applied.
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
        """The front knows all changes up to this entry, and those after it up to the last that it was told of change
        nothing."""
        broker.on_command = self._hear

    def begin(self, index: int) -> None:
        """All that the broker has is committed, and its log is open."""
        self._unsealed.clear()
        self._front.begin(self._broker.configuration(), index)
        self.changed_index = index

    def sealed(self, index: int) -> None:
        """What this broker has changed itself is in that entry."""
        if self._unsealed:
            self._sealed.append((index, self._take()))

    def _hear(self, command: bytes) -> None:
        self._unsealed.append(command)

    def _take(self) -> list[bytes]:
        unsealed, self._unsealed = self._unsealed, []
        return unsealed

    def applied(self, index: int) -> None:
        """Whatever was heard since is from entries up to this one, which are committed."""
        if self._unsealed:
            self._follow(index, self._take())

    def committed(self, index: int) -> None:
        """Of a root: the log is safe up to there."""
        while self._sealed and self._sealed[0][0] <= index:
            self._follow(*self._sealed.popleft())

    def _follow(self, index: int, commands: list[bytes]) -> None:
        self._front.follow(index, commands)
        self.changed_index = index
