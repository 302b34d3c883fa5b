"""A transaction is applied as a whole or not at all (P5): its publishes and its acks."""

from __future__ import annotations

from pandomq.sim.checkers.checker import Checker
from pandomq.sim.ledger import BrokenPromise, ClientTransaction, Delivery, TransactionPhase
from pandomq.sim.machine import Machine

PROMISE = "transactions are atomic"


class TransactionsWhole(Checker):
    def emitted(self, delivery: Delivery, machine: Machine) -> None:
        message, transaction = delivery.message, delivery.message.transaction
        if transaction is not None and transaction.phase in (TransactionPhase.OPEN, TransactionPhase.ROLLED_BACK):
            raise BrokenPromise(
                PROMISE, f"{message} of {transaction}, which is {transaction.phase.value}, was delivered"
            )

    def finished(self, machine: Machine) -> None:
        for transaction in self.ledger.transactions:
            self._check(transaction)

    def _check(self, transaction: ClientTransaction) -> None:
        ledger = self.ledger
        messages = transaction.messages
        seen = [message for message in messages if all(ledger.find(queue, message) for queue in message.queues)]
        for message in messages:
            for queue in message.queues:
                place = (queue, message)
                kept = place in ledger.settled or message in ledger.left.get(queue, ())
                if place in ledger.emitted and not kept:
                    raise BrokenPromise(PROMISE, f"{message} of {transaction} was delivered too early, and is gone")
        if seen and len(seen) != len(messages):
            raise BrokenPromise(PROMISE, f"of {transaction} {len(seen)} messages out of {len(messages)} were seen")
        if transaction.phase is TransactionPhase.COMMITTED and len(seen) != len(messages):
            raise BrokenPromise(PROMISE, f"{transaction} was committed, and none of its messages is there")
        if messages and transaction.phase is TransactionPhase.COMMITTING:
            self._check_acks(transaction, there=bool(seen))

    def _check_acks(self, transaction: ClientTransaction, *, there: bool) -> None:
        """Checks a transaction whose client received no answer: its acks count if and only if its publishes are
        present."""
        for place in transaction.settled:
            queue, message = place
            left = message in self.ledger.left.get(queue, ())
            if there and left:
                raise BrokenPromise(PROMISE, f"{transaction} is there, but so is {message}, which it acked")
            # A message that was delivered before its publish was durable may be lost for that reason.
            safe = message.transaction is not None or (message.confirmed and message.persistent)
            if not there and not left and safe and self.ledger.settled[place] == 1:
                raise BrokenPromise(PROMISE, f"{transaction} left no messages, but its ack of {message} holds")
