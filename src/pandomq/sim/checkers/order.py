"""First deliveries of a channel's messages from a queue are in the order of publishing (P4), priority by priority.

One step may write to several consumers, and the order among them cannot be observed. So a delivery is compared with
those of earlier steps, and with those on its own connection.
"""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Delivery, WorldLedger
from pandomq.sim.machine import Machine

PROMISE = "order per channel and queue"

Line = tuple[str, int, int, object]
"""Queue, channel, priority; and the consumer's connection, where that matters."""


class InOrder(Checker):
    looks_everywhere = True
    proxied = False
    """Whether brokers other than the root deliver, too."""

    def __init__(self, ledger: WorldLedger) -> None:
        super().__init__(ledger)
        self._last: dict[Line, int] = {}
        """The highest number that an earlier step delivered."""
        self._step: dict[Line, int] = {}

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        message, queue = delivery.message, delivery.queue
        kind = self.ledger.kinds[queue]
        if not kind.ordered or delivery.asked or delivery.place in self.ledger.emitted:
            return
        # Deliveries of the root may be under way to other brokers for a while, or return from them unseen: then only
        # first deliveries on one connection can be compared.
        if self.proxied and delivery.redelivered:
            return
        level = min(message.priority, kind.priorities)
        line = (queue, message.channel, level, delivery.connection if self.proxied else None)
        last = self._last.get(line, 0)
        if message.number < last:
            raise BrokenPromise(PROMISE, f"{message} was first delivered from {queue} after number {last}")
        self._step[line] = max(self._step.get(line, 0), message.number)

    def stepped(self, machine: Machine) -> None:
        if self._step:
            for line, number in self._step.items():
                self._last[line] = max(self._last.get(line, 0), number)
            self._step.clear()
