"""A filter between machines and the network. A plot may lose messages of some kinds, or hold them for a while.

It does no more to messages than a network may do: any message may be lost, and any may arrive late, even after its
sender has gone.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from pandomq.replica.protocol.messages import ReplicaMessage, decode
from pandomq.sim.logs.network import Network


class Fate(enum.Enum):
    CARRIED = "carried"
    LOST = "lost"
    HELD = "held"


Rule = Callable[[str, str, ReplicaMessage], Fate]
"""A function of sender, receiver and message."""


class MessageFilter:
    def __init__(self, network: Network) -> None:
        self._network = network
        self.rule: Rule | None = None
        self.held: list[tuple[str, str, bytes]] = []

    def send(self, sender: str, receiver: str, data: bytes) -> None:
        fate = Fate.CARRIED if self.rule is None else self.rule(sender, receiver, decode(data))
        match fate:
            case Fate.CARRIED:
                self._network.send(sender, receiver, data)
            case Fate.HELD:
                self.held.append((sender, receiver, data))
            case Fate.LOST:
                pass

    def release(self) -> None:
        """Delivers the held messages now."""
        held, self.held = self.held, []
        for sender, receiver, data in held:
            station = self._network.stations[receiver]
            if station.reachable:
                station.delivered(sender, data)

    def clear(self) -> None:
        self.rule = None
        self.held.clear()
