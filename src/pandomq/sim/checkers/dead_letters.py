"""Two queues that are each other's dead-letter queue: a message that no client rejects dies once in each, and is
dropped.

Each death leaves a copy in another queue, and the copy is not lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, SentMessage, WorldLedger

if TYPE_CHECKING:
    from pandomq.sim.machine import Machine

PROMISE: Final = "no dead letter is lost"


class RoundsEnd(Checker):
    def __init__(self, ledger: WorldLedger, first: str, second: str, first_trail: str, second_trail: str) -> None:
        super().__init__(ledger)
        self._first, self._second = first, second
        self._first_trail, self._second_trail = first_trail, second_trail

    def all_died(self) -> bool:
        """Whether a client has acked the copy of the second death of each message."""
        return all((self._second_trail, message) in self.ledger.settled for message in self._confirmed())

    def finished(self, machine: Machine) -> None:
        for message in self._confirmed():
            if self._is_in(self._first, message):
                continue
            if not self._is_in(self._first_trail, message):
                raise BrokenPromise(PROMISE, f"{message} is neither in {self._first} nor in its dead-letter queue")
            if not self._is_in(self._second, message) and not self._is_in(self._second_trail, message):
                raise BrokenPromise(PROMISE, f"{message} is neither in {self._second} nor in its dead-letter queue")

    def _is_in(self, queue: str, message: SentMessage) -> bool:
        """Whether the queue has the message, or a client consumed it from there."""
        return (queue, message) in self.ledger.settled or message in self.ledger.left.get(queue, ())

    def _confirmed(self) -> list[SentMessage]:
        messages = self.ledger.messages.values()
        return [message for message in messages if message.confirmed and self._first in message.queues]
