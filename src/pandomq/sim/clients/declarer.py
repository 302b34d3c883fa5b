"""Declares queues and does nothing else: for worlds from which a reduction leaves out clients, and for queues that no
other client declares.

A client may rely on a queue that only another client declares. Without the queue a lessee, for example, would wait for
ever, which would look like a broken promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pandomq.methods import Method, QueueDeclareOk
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.queues import QueueKind

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene


class Declarer(SimulatedClient):
    def __init__(self, scene: Scene, kinds: Sequence[QueueKind], name: str = "declarer") -> None:
        super().__init__(scene, name)
        self._kinds = kinds
        self._declared: set[str] = set()

    @property
    def content(self) -> bool:
        return len(self._declared) == len(self._kinds)

    def opened(self) -> None:
        # Queues may have been lost with a broker; like other clients, it declares them on each connection.
        for kind in self._kinds:
            self.declare(kind)

    def method(self, method: Method, body: bytes) -> None:
        if not isinstance(method, QueueDeclareOk):
            raise self.unexpected(method)
        self._declared.add(method.queue)
