"""Class tx."""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.publishing.returns import return_unroutable
from pandomq.broker.publishing.transactions import Transaction
from pandomq.errors import precondition_failed
from pandomq.methods import TxCommit, TxCommitOk, TxRollback, TxRollbackOk, TxSelect, TxSelectOk

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel


def select(broker: "Broker", channel: "Channel", method: TxSelect) -> None:
    if channel.kernel.mode == kernel.CONFIRM:
        raise precondition_failed("cannot switch from confirm to tx mode")
    if channel.transaction is None:
        channel.transaction = Transaction(channel.client)
        channel.kernel.mode = kernel.TRANSACTION
    channel.reply(TxSelectOk())


def commit(broker: "Broker", channel: "Channel", method: TxCommit) -> None:
    transaction = _transaction(channel)
    if channel.numbering is not None:
        broker.producers.committed(channel)
    if not transaction.commit(broker, channel):
        raise precondition_failed("partial tx completion")
    # Messages returned from a transaction come before its commit-ok.
    return_unroutable(broker)
    channel.reply_when_committed(TxCommitOk())


def rollback(broker: "Broker", channel: "Channel", method: TxRollback) -> None:
    _transaction(channel).rollback()
    channel.reply(TxRollbackOk())


def _transaction(channel: "Channel") -> Transaction:
    if channel.transaction is None:
        raise precondition_failed("channel is not transactional")
    return channel.transaction
