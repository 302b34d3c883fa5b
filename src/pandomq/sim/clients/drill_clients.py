"""Clients of drills: one publishes on request, the other consumes and never publishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.sim.clients.consumer import ConsumingClient
from pandomq.sim.clients.publisher import Publisher

if TYPE_CHECKING:
    from pandomq.sim.queues import QueueKind
    from pandomq.sim.scene import Scene


class DrillPublisher(Publisher):
    def __init__(self, scene: Scene, name: str, kind: QueueKind) -> None:
        super().__init__(scene, name, [kind], "", 0)
        self._think_ms = 5
        self._window = self._burst_max = 20

    def ask(self, count: int) -> None:
        """Publishes so many more messages; the client is content when they are confirmed."""
        self._wanted = self.confirmed + len(self._unconfirmed) + count
        self._later()


class SilentConsumer(ConsumingClient):
    """Acks without a proof: a connection with publishes may be held back, together with its acks."""

    def __init__(self, scene: Scene, name: str, kind: QueueKind) -> None:
        super().__init__(scene, name, kind)
        # These values make it slow.
        self._prefetch, self._think_ms, self._multiple = 1, 30, False
        self._gets = self._returns = False

    def _ask_proof(self) -> None:
        self._unproven.clear()
