"""A message that is delivered again has `redelivered` set (P3).

A dead letter enters its queue as a new message; if a crash reverts that, it enters again as a new one
(`QueueKind.reborn`).
"""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Delivery, Place, WorldLedger
from pandomq.sim.machine import Machine
from pandomq.sim.queues import QueueKind

PROMISE = "a redelivery has `redelivered` set"


class RedeliveredSaysSo(Checker):
    proxied = False
    """Whether brokers other than the root deliver, too."""

    def __init__(self, ledger: WorldLedger) -> None:
        super().__init__(ledger)
        self._new: set[Place] = set()
        """The messages that were delivered as new."""

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        kind = self.ledger.kinds[delivery.queue]
        if delivery.message.said_again or kind.recurs:
            return
        if self.proxied:
            self._compare(delivery, kind)
        elif delivery.redelivered or delivery.place not in self.ledger.emitted:
            return
        elif not kind.reborn or self.ledger.emitted[delivery.place] == machine.life:
            self._complain(delivery)

    def _compare(self, delivery: Delivery, kind: QueueKind) -> None:
        """A redelivery may overtake a delivery that is on its way through another broker, but only one delivery is
        new."""
        if delivery.redelivered or kind.reborn:
            return
        if delivery.place in self._new:
            self._complain(delivery)
        self._new.add(delivery.place)

    def _complain(self, delivery: Delivery) -> None:
        raise BrokenPromise(
            PROMISE, f"{delivery.message} was delivered from {delivery.queue} again, as if for the first time"
        )
