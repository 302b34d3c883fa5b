"""Empties all queues when everybody else has gone: what it finds is what the broker has kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pandomq.methods import BasicConsume, BasicConsumeOk, BasicDeliver, Method, QueueDeclare, QueueDeclareOk
from pandomq.sim.clients.client import Client
from pandomq.sim.ledger import BrokenPromise
from pandomq.sim.queues import QueueKind

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene


class Drainer(Client):
    def __init__(self, scene: Scene, kinds: Sequence[QueueKind]) -> None:
        super().__init__(scene, "drainer")
        self.no_ack = True
        self.wants_root = True
        self._kinds = kinds
        self._waiting = {kind.name: 2 for kind in kinds}
        """How often a queue has yet to be found empty; what is delivered may come after the first answer."""

    @property
    def content(self) -> bool:
        return not self._waiting

    def opened(self) -> None:
        for kind in self._kinds:
            self.declare(kind)
            self.send(BasicConsume(kind.name, kind.name, no_ack=True))

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case BasicDeliver(queue):
                self.scene.ledger.left.setdefault(queue, []).append(self.scene.ledger.message_of(body))
            case QueueDeclareOk(queue, count):
                self._look(queue, count)
            case BasicConsumeOk():
                pass
            case _:
                raise BrokenPromise("legal requests are served", f"{self.name} heard {method}")

    def _look(self, queue: str, count: int) -> None:
        if queue not in self._waiting:
            # It had to come again, to another root, and has seen this one empty before.
            return
        if count == 0:
            self._waiting[queue] -= 1
            if not self._waiting[queue]:
                del self._waiting[queue]
                return

        def ask() -> None:
            if self.ready:
                self.send(QueueDeclare(queue, passive=True))

        self.scene.agenda.after(10, ask)
