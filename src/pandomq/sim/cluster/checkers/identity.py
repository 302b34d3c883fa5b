"""A message is (queue, sequence, term): no two are ever the same by that, on no broker (D6)."""

from __future__ import annotations

from typing import Final

from pandomq.broker.queue import Queue
from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Ledger
from pandomq.sim.machine import Machine

PROMISE: Final = "a number names one message"
STEPS_BETWEEN: Final = 24

Identity = tuple[str, int, int, int]
"""Epoch, queue, sequence, term."""


class IdentityKept(Checker):
    def __init__(self, ledger: Ledger) -> None:
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
        for sequence, term, *_, message in kernel.snapshot():
            body = known.setdefault((epoch_id, kernel.queue_id, sequence, term), message.body)
            if body != message.body:
                raise BrokenPromise(
                    PROMISE,
                    f"in {queue.name} of {machine.name} {sequence} of term {term} is {_name(message.body)}, and was "
                    f"{_name(body)}",
                )


def _name(body: bytes) -> str:
    return body.partition(b"|")[0].decode()
