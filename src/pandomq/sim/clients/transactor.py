"""Moves messages in transactions: publishes several and acks some of its deliveries; commits, or rolls back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.methods import (
    BasicAck,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicQos,
    BasicQosOk,
    ChannelClose,
    Method,
    QueueDeclareOk,
    TxCommit,
    TxCommitOk,
    TxRollback,
    TxRollbackOk,
    TxSelect,
    TxSelectOk,
)
from pandomq.sim.clients.client import SimulatedClient
from pandomq.sim.clients.publisher import Publishing
from pandomq.sim.ledger import BrokenPromise, ClientTransaction, SentMessage, TransactionPhase
from pandomq.sim.queues import WHOLE, QueueKind

if TYPE_CHECKING:
    from pandomq.sim.scene import Scene

ROLLBACK_CHANCE: Final = 0.15
PRECONDITION_FAILED: Final = 406


class Transactor(SimulatedClient):
    def __init__(self, scene: Scene, name: str, targets: list[QueueKind], wanted: int) -> None:
        super().__init__(scene, name)
        self._targets = targets
        self._wanted = wanted
        self._think_ms = self.random.choice((0, 5, 40))
        self._publishing: Publishing | None = None
        self._transaction: ClientTransaction | None = None
        self._held: dict[int, SentMessage] = {}
        self._settling: list[int] = []
        self.done = 0

    @property
    def content(self) -> bool:
        return self.done >= self._wanted and self._transaction is None

    def end_wish(self) -> None:
        self._wanted = self.done + 2
        self._later()

    def opened(self) -> None:
        self._publishing = Publishing(self)
        self._held.clear()
        self._settling = []
        self.send(TxSelect(), BasicQos(prefetch_count=10))
        for kind in self._targets:
            self.declare(kind)
        self.send(BasicConsume(WHOLE.name, WHOLE.name))
        self._later()

    def disconnected(self) -> None:
        self._publishing = None
        self._transaction = None

    def method(self, method: Method, body: bytes) -> None:
        match method:
            case BasicDeliver(_, tag):
                self._held[tag] = self.scene.ledger.message_of(body)
            case TxCommitOk():
                self._committed()
            case TxRollbackOk():
                self._transaction = None
                self._settling = []
                self._later()
            case TxSelectOk() | QueueDeclareOk() | BasicConsumeOk() | BasicQosOk():
                pass
            case _:
                raise self.unexpected(method)

    def channel_closed(self, method: ChannelClose) -> None:
        transaction = self._transaction
        told = method.reply_code == PRECONDITION_FAILED and "rolled back" in method.reply_text
        if (
            not told
            or transaction is None
            or transaction.phase is not TransactionPhase.COMMITTING
            or not self.scene.proxied
        ):
            super().channel_closed(method)
            return
        # The root changed in between. No part of the transaction was applied, and none may ever be visible.
        self.scene.trace.detail(self.name, f"{transaction} was rolled back")
        transaction.phase = TransactionPhase.ROLLED_BACK
        for place in transaction.settled:
            self.scene.ledger.unsettle(place)
        self.cut()

    def _later(self) -> None:
        publishing = self._publishing

        def again() -> None:
            if self._publishing is publishing and self._transaction is None and self.ready:
                self._transact()

        self.scene.agenda.after(self.random.randint(0, self._think_ms), again)

    def _transact(self) -> None:
        if self._publishing is None or self.done >= self._wanted:
            return
        ledger = self.scene.ledger
        transaction = ClientTransaction(len(ledger.transactions) + 1)
        ledger.transactions.append(transaction)
        self._transaction = transaction
        octets = []
        for _ in range(self.random.randint(1, 4)):
            message, content = self._publishing.message([self.random.choice(self._targets)], transaction=transaction)
            transaction.messages.append(message)
            octets.append(content)
        self._settling = [tag for tag in self._held if self.random.random() < 0.7]
        transaction.settled = [(WHOLE.name, self._held[tag]) for tag in self._settling]
        self.send_bytes(b"".join(octets))
        self.send(*(BasicAck(tag) for tag in self._settling))
        if self.random.random() < ROLLBACK_CHANCE:
            transaction.phase = TransactionPhase.ROLLED_BACK
            self.send(TxRollback())
            return
        for place in transaction.settled:
            ledger.settle(place)
        transaction.phase = TransactionPhase.COMMITTING
        self.scene.trace.detail(self.name, f"commits {transaction}")
        self.send(TxCommit())

    def _committed(self) -> None:
        transaction = self._transaction
        if transaction is None:
            raise BrokenPromise("transactions are atomic", f"{self.name} received a commit that it did not request")
        transaction.phase = TransactionPhase.COMMITTED
        self.done += 1
        for tag in self._settling:
            del self._held[tag]
        self.scene.ledger.proven.update(transaction.settled)
        self.scene.observer.committed(transaction)
        self._transaction = None
        self._settling = []
        self._later()
