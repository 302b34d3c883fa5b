"""A message whose ack is proven never comes again (P3)."""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Delivery
from pandomq.sim.machine import Machine

PROMISE = "no acked message comes back"


class AckedGone(Checker):
    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        if delivery.place in self.ledger.proven:
            if not self.ledger.kinds[delivery.queue].is_logged and delivery.message.life != machine.life:
                # The log has neither the message nor its ack: if its publish was not confirmed before the root failed,
                # the publisher's broker has published it again.
                return
            raise BrokenPromise(
                PROMISE, f"{delivery.message} came again from {delivery.queue} after its ack was proven"
            )
