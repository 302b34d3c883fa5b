"""(queue, sequence, term) identifies a message: no two messages share it on any broker (D6). A message that was
published once is once in a queue (R29)."""

from __future__ import annotations

from typing import Final

from pandomq.broker.queues.queue import Queue
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, WorldLedger
from pandomq.sim.machine import Machine
from pandomq.sim.queues import DEAD, PROOFS

PROMISE: Final = "a number identifies one message"
ONCE: Final = "nothing is taken twice"
STEPS_BETWEEN: Final = 24

Identity = tuple[str, int, int, int]
"""Epoch, queue, sequence, term."""


class IdentityKept(Checker):
    def __init__(self, ledger: WorldLedger) -> None:
        super().__init__(ledger)
        self._bodies: dict[Identity, bytes] = {}

    def stepped(self, machine: Machine) -> None:
        node = machine.node
        if node is None or machine.steps % STEPS_BETWEEN or machine.replica is None:
            return
        epoch_id = machine.replica._core.state.epoch_id
        for vhost in node.broker.state.vhosts.values():
            for queue in vhost.queues.values():
                if queue.owner is None:
                    self._look(machine, epoch_id, queue)

    def _look(self, machine: Machine, epoch_id: str, queue: Queue) -> None:
        kernel, known = queue.kernel, self._bodies
        rows = kernel.snapshot()
        if queue.name in self.ledger.kinds and queue.name not in (DEAD, PROOFS):
            self._count(machine, queue, [row[-1].body for row in rows])
        for sequence, term, *_, message in rows:
            body = known.setdefault((epoch_id, kernel.queue_id, sequence, term), message.body)
            if body != message.body:
                raise BrokenPromise(
                    PROMISE,
                    f"in {queue.name} of {machine.name} {sequence} of term {term} is {_name(message.body)}, and was "
                    f"{_name(body)}",
                )

    def _count(self, machine: Machine, queue: Queue, bodies: list[bytes]) -> None:
        names = set(map(_name, bodies))
        if len(names) < len(bodies):
            twice = sorted(name for name in names if [*map(_name, bodies)].count(name) > 1)
            raise BrokenPromise(ONCE, f"{queue.name} of {machine.name} holds {', '.join(twice)} twice")


def _name(body: bytes) -> str:
    return body.partition(b"|")[0].decode()
