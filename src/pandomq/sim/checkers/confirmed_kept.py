"""What was confirmed is there until it is consumed (P2).

What is not persistent may go with its broker's process. Where several brokers have it (`in_memories`), it outlives one
of them at a time, as long as no machine loses power.
"""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Message
from pandomq.sim.machine import Machine

PROMISE = "no confirmed loss"
LATENCY_MS = 200
"""How much earlier than its client heard of it a confirm may have been given."""
WRITTEN_MS = 4_000
"""So much later everybody has written what they had in memory."""


class ConfirmedKept(Checker):
    in_memories = False
    """A message that is not persistent is confirmed when several brokers have it."""

    def _is_promised(self, message: Message, queue: str, machine: Machine) -> bool:
        kind = self.ledger.kinds[queue]
        durable = kind.durable
        if ((message.persistent or kind.stream) and durable) or message.confirmed_life == machine.life:
            return True
        since_ms = message.confirmed_ms - LATENCY_MS
        lost = any(at_ms >= since_ms for at_ms in self.ledger.losses_ms)
        ended = sum(since_ms <= at_ms <= message.confirmed_ms + WRITTEN_MS for at_ms in self.ledger.ends_ms)
        return durable and self.in_memories and not lost and ended <= 1

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
        if not self._is_promised(message, queue, machine):
            return
        if any((place, message) in ledger.settled for place in ledger.places(queue)):
            return
        # Nobody acked it, so the last look into the queue must have found it there or where it died.
        if not any(message in ledger.left.get(place, ()) for place in ledger.places(queue)):
            raise BrokenPromise(PROMISE, f"{message} was confirmed in {queue}, nobody acked it, and it is gone")
