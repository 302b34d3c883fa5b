"""Empties all queues when all other clients have left: the messages that it finds are those that the broker has
kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pandomq.methods import BasicConsume, BasicConsumeOk, BasicDeliver, Method, QueueDeclare, QueueDeclareOk
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.queues import QueueKind

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene


class Drainer(SimulatedClient):
    def __init__(self, scene: Scene, kinds: Sequence[QueueKind]) -> None:
        super().__init__(scene, "drainer")
        self.no_ack = True
        self.wants_root = True
        self._kinds = kinds
        self._waiting = {kind.name: 2 for kind in kinds}
        """How often each queue must still be found empty; messages may be delivered after the first answer."""

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
                raise self.unexpected(method)

    def _look(self, queue: str, count: int) -> None:
        if queue not in self._waiting:
            # It reconnected to another root, and has found this queue empty before.
            return
        if count == 0 and self._is_nothing_withheld():
            self._waiting[queue] -= 1
            if not self._waiting[queue]:
                del self._waiting[queue]
                return

        def ask() -> None:
            if self.ready:
                self.send(QueueDeclare(queue, passive=True))

        self.scene.agenda.after(10, ask)

    def _is_nothing_withheld(self) -> bool:
        """Whether no message is delayed or leased. A power loss may revert that a delayed message became due, or that a
        lease ended: then that comes once more."""
        node = None if self.cable is None else self.cable.machine.node
        if node is None:
            return False
        state = node.broker.state
        exchanges = [exchange for vhost in state.vhosts.values() for exchange in vhost.router.exchanges.values()]
        delayed = any(one.waiting is not None and one.waiting.kernel.ready_count for one in exchanges)
        return not delayed and not len(state.leases)
