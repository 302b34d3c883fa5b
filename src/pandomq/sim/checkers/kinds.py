"""The promises of kinds of queues that do not keep all messages: limits, times to live, last values, refusals."""

from __future__ import annotations

from collections import defaultdict

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, Delivery, SentMessage
from pandomq.sim.machine import Machine
from pandomq.sim.queues import QueueKind

PROMISE = "a queue obeys its arguments"
LATE_MS = 0
"""How late an expired message may leave the broker."""


class KindsKept(Checker):
    proxied = False
    """Publishes of a publisher's last connection may still be under way between brokers when it has a new
    connection."""

    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        message = delivery.message
        if message.refused and len(message.queues) == 1:
            raise BrokenPromise(PROMISE, f"{message} was refused, but delivered from {delivery.queue}")

    def finished(self, machine: Machine) -> None:
        published: dict[str, list[SentMessage]] = defaultdict(list)
        for message in self.ledger.messages.values():
            for queue in message.queues:
                published[queue].append(message)
        for queue, messages in published.items():
            kind = self.ledger.kinds[queue]
            left = set(self.ledger.left.get(queue, ()))
            if kind.length_max and not kind.refuses and len(left) > kind.length_max:
                raise BrokenPromise(PROMISE, f"{queue} held {len(left)} messages, at most {kind.length_max} may be")
            if kind.last_value:
                self._check_values(kind, messages, left)
            if kind.ttl_ms and kind.dead_letters_to is None:
                self._check_times(kind, messages, left, machine)

    def _check_values(self, kind: QueueKind, messages: list[SentMessage], left: set[SentMessage]) -> None:
        by_key: dict[str | None, list[SentMessage]] = defaultdict(list)
        for message in messages:
            by_key[message.value_key].append(message)
        for key, rivals in by_key.items():
            kept = [message for message in rivals if message in left]
            if len(kept) > 1:
                raise BrokenPromise(PROMISE, f"{kind.name} held {len(kept)} messages with the key {key}")
            # A key has one publisher, so no other message can replace its newest one.
            newest = max(rivals, key=lambda message: (message.channel, message.number))
            settled = (kind.name, newest) in self.ledger.settled
            if not self.proxied and newest.confirmed and newest.persistent and not settled and newest not in left:
                raise BrokenPromise(PROMISE, f"{newest}, the last value of {key}, is gone from {kind.name}")

    def _check_times(
        self, kind: QueueKind, messages: list[SentMessage], left: set[SentMessage], machine: Machine
    ) -> None:
        """Checks that messages whose time to live is not over are in the queue."""
        now_ms = machine.broker_ms
        for message in messages:
            early = now_ms < message.sent_ms + kind.ttl_ms
            safe = message.persistent or message.confirmed_life == machine.life
            settled = (kind.name, message) in self.ledger.settled
            if early and safe and message.confirmed and not settled and message not in left:
                raise BrokenPromise(PROMISE, f"{message} is gone from {kind.name} before its time")
