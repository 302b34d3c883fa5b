"""Class tx on a front."""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.cluster.proxy.front_channel import ignore_reply
from pandomq.cluster.proxy.transactions import FrontTransaction
from pandomq.errors import precondition_failed
from pandomq.methods import TxCommit, TxRollback, TxRollbackOk, TxSelect, TxSelectOk

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel


def select(front: "Front", channel: "FrontChannel", method: TxSelect) -> None:
    if channel.kernel.mode == kernel.CONFIRM:
        raise precondition_failed("cannot switch from confirm to tx mode")
    if channel.transaction is None:
        channel.transaction = FrontTransaction(channel.client)
        channel.kernel.mode = kernel.TRANSACTION
        if channel.lane is not None:
            channel.lane.ask(TxSelect(), ignore_reply)
    channel.reply(TxSelectOk())


def rollback(front: "Front", channel: "FrontChannel", method: TxRollback) -> None:
    _transaction(channel).rollback_at_root(channel)
    channel.reply(TxRollbackOk())


def _transaction(channel: "FrontChannel") -> FrontTransaction:
    transaction = channel.transaction
    if transaction is None:
        raise precondition_failed("channel is not transactional")
    return transaction


def commit(front: "Front", channel: "FrontChannel", method: TxCommit) -> None:
    transaction = _transaction(channel)
    if channel.reach() is not None:
        transaction.commit_at_root(front, channel)
