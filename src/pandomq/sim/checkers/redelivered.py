"""What is delivered again says so (P3).

A message that died comes into the queue of dead letters as a new one; if a crash undid that, it does so again, and is
new again.
"""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Delivery, Ledger, Place
from pandomq.sim.machine import Machine
from pandomq.sim.queues import DEAD

PROMISE = "a redelivery says so"


class RedeliveredSaysSo(Checker):
    proxied = False
    """Others than the root deliver, too."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        self._new: set[Place] = set()
        """What was delivered as new."""

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        if delivery.message.said_again:
            return
        if self.proxied:
            self._compare(delivery)
        elif delivery.redelivered or delivery.place not in self.ledger.emitted:
            return
        elif delivery.queue != DEAD or self.ledger.emitted[delivery.place] == machine.life:
            self._complain(delivery)

    def _compare(self, delivery: Delivery) -> None:
        """What comes again may overtake what was on its way by another broker: but it is new once only."""
        if delivery.redelivered or delivery.queue == DEAD:
            return
        if delivery.place in self._new:
            self._complain(delivery)
        self._new.add(delivery.place)

    def _complain(self, delivery: Delivery) -> None:
        raise BrokenPromise(
            PROMISE, f"{delivery.message} was delivered from {delivery.queue} again, as if for the first time"
        )
