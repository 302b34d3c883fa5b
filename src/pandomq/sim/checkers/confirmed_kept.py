"""A confirmed message stays until it is consumed (P2).

A message that is not persistent may be lost with its broker's process. If several brokers have it (`in_memories`), it
survives the loss of one of them at a time, as long as no machine loses power.
"""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, SentMessage
from pandomq.sim.machine import Machine
from pandomq.sim.queues import QueueKind

PROMISE = "no confirmed loss"
LATENCY_MS = 200
"""A confirm may have been given this much earlier than its client received it."""
WRITTEN_MS = 4_000
"""After this time every broker has written to disk what it had in memory, unless the world stood still."""

CLOCKS_MS = 3_000
"""The largest difference between the clocks of two roots."""


class ConfirmedKept(Checker):
    in_memories = False
    """Whether a message that is not persistent is confirmed only when several brokers have it."""

    def _is_promised(self, message: SentMessage, queue: str, machine: Machine) -> bool:
        kind = self.ledger.kinds[queue]
        is_logged = kind.is_logged
        if ((message.persistent or kind.stream) and is_logged) or message.confirmed_life == machine.life:
            return True
        since_ms = message.confirmed_ms - LATENCY_MS
        lost = any(at_ms >= since_ms for at_ms in self.ledger.losses_ms)
        ended = sum(
            since_ms <= at_ms and self.ledger.awake_ms(message.confirmed_ms, at_ms) <= WRITTEN_MS
            for at_ms in self.ledger.ends_ms
        )
        return is_logged and self.in_memories and not lost and ended <= 1

    def _may_have_expired(self, message: SentMessage, kind: QueueKind, machine: Machine) -> bool:
        """Whether the message may have expired by the root's clock. Worlds are shorter than the time to live of a queue
        that keeps its messages, but time may leap."""
        return kind.dead_letters_to is None and 0 < kind.ttl_ms <= machine.broker_ms - message.sent_ms + CLOCKS_MS

    def finished(self, machine: Machine) -> None:
        for message in self.ledger.messages.values():
            if message.confirmed:
                for queue in message.queues:
                    self._check(message, queue, machine)

    def _check(self, message: SentMessage, queue: str, machine: Machine) -> None:
        ledger = self.ledger
        kind = ledger.kinds[queue]
        if not kind.keeps:
            return
        if ledger.leapt_ms and self._may_have_expired(message, kind, machine):
            return
        if not self._is_promised(message, queue, machine):
            return
        if any((place, message) in ledger.settled for place in ledger.places(queue)):
            return
        # No client acked it, so it must have been found when the queues were emptied, or where its dead letters go.
        if not any(message in ledger.left.get(place, ()) for place in ledger.places(queue)):
            raise BrokenPromise(PROMISE, f"{message} was confirmed in {queue}, nobody acked it, and it is gone")
