"""What is delivered again says so (P3).

A message that died comes into the queue of dead letters as a new one; if a crash undid that, it does so again, and is
new again.
"""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Delivery
from pandomq.sim.machine import Machine
from pandomq.sim.queues import DEAD

PROMISE = "a redelivery says so"


class RedeliveredSaysSo(Checker):
    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        if delivery.redelivered or delivery.place not in self.ledger.emitted:
            return
        if delivery.queue != DEAD or self.ledger.emitted[delivery.place] == machine.life:
            raise BrokenPromise(
                PROMISE, f"{delivery.message} was delivered from {delivery.queue} again, as if for the first time"
            )
