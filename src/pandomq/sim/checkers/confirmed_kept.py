"""What was confirmed is there until it is consumed (P2). What is not persistent may go with its broker's process."""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Message
from pandomq.sim.machine import Machine

PROMISE = "no confirmed loss"


class ConfirmedKept(Checker):
    def finished(self, machine: Machine) -> None:
        for message in self.ledger.messages.values():
            if message.confirmed:
                for queue in message.queues:
                    self._check(message, queue, machine)

    def _check(self, message: Message, queue: str, machine: Machine) -> None:
        ledger = self.ledger
        kind = ledger.kinds[queue]
        if not kind.keeps:
            return
        if not (message.persistent and kind.durable) and message.confirmed_life != machine.life:
            return
        if any((place, message) in ledger.settled for place in ledger.places(queue)):
            return
        # Nobody acked it, so the last look into the queue must have found it there or where it died.
        if not any(message in ledger.left.get(place, ()) for place in ledger.places(queue)):
            raise BrokenPromise(PROMISE, f"{message} was confirmed in {queue}, nobody acked it, and it is gone")
