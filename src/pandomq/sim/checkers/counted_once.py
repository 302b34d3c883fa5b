"""A message is not published under a number that the broker remembers (D11, D12).

Clients publish another message under a number that the broker is known to remember. The broker must confirm it, and
must never deliver it.
"""

from __future__ import annotations

from typing import Final

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Delivery, SentMessage, WorldLedger
from pandomq.sim.machine import Machine

PROMISE: Final = "a number counts once"


class CountedOnce(Checker):
    def __init__(self, ledger: WorldLedger) -> None:
        super().__init__(ledger)
        self._repeats: set[SentMessage] = set()

    def repeated(self, message: SentMessage) -> None:
        """The broker has answered, and remembered the number all the time."""
        self._repeats.add(message)
        if any((queue, message) in self.ledger.emitted for queue in message.queues):
            self._complain(message)

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        if delivery.message in self._repeats:
            self._complain(delivery.message)

    def _complain(self, message: SentMessage) -> None:
        raise BrokenPromise(PROMISE, f"{message} was published under a number that is remembered, and was delivered")
