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
        self._new: dict[Place, tuple[bool, int]] = {}
        """What was delivered as new: whether it was confirmed by then, and how many processes had ended."""

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        if self.proxied:
            self._compare(delivery)
        elif delivery.redelivered or delivery.place not in self.ledger.emitted:
            return
        elif delivery.queue != DEAD or self.ledger.emitted[delivery.place] == machine.life:
            self._complain(delivery)

    def _compare(self, delivery: Delivery) -> None:
        """What comes again may overtake what was on its way by another broker: but it is new once only. Unless a root
        delivered it, and died before it was safe: then whoever forwarded it sends it again, to a root that knows
        nothing of it."""
        if delivery.redelivered or delivery.queue == DEAD:
            return
        ended = len(self.ledger.ends_ms)
        confirmed, ended_then = self._new.setdefault(delivery.place, (delivery.message.confirmed, -1))
        if ended_then == -1:
            self._new[delivery.place] = (confirmed, ended)
        elif confirmed or ended == ended_then:
            self._complain(delivery)

    def _complain(self, delivery: Delivery) -> None:
        raise BrokenPromise(
            PROMISE, f"{delivery.message} was delivered from {delivery.queue} again, as if for the first time"
        )
