"""Which function handles which method on a front, where it differs from other brokers."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from pandomq import methods
from pandomq.broker.methods import dispatch
from pandomq.cluster.proxy.methods import on_basic, on_channel, on_exchange, on_queue, on_tx

HANDLERS: Final[Mapping[type[methods.Method], Callable[[Any, Any, Any], None]]] = {
    **dispatch.HANDLERS,
    methods.ChannelClose: on_channel.close,
    methods.ConfirmSelect: on_channel.confirm,
    methods.ExchangeDeclare: on_exchange.declare,
    methods.ExchangeDelete: on_exchange.delete,
    methods.ExchangeBind: on_exchange.bind,
    methods.ExchangeUnbind: on_exchange.unbind,
    methods.QueueDeclare: on_queue.declare,
    methods.QueueDelete: on_queue.delete,
    methods.QueuePurge: on_queue.purge,
    methods.QueueBind: on_queue.bind,
    methods.QueueUnbind: on_queue.unbind,
    methods.BasicQos: on_basic.qos,
    methods.BasicConsume: on_basic.consume,
    methods.BasicCancel: on_basic.cancel,
    methods.BasicGet: on_basic.get,
    methods.BasicRecover: on_basic.recover,
    methods.BasicRecoverAsync: on_basic.recover_async,
    methods.TxSelect: on_tx.select,
    methods.TxCommit: on_tx.commit,
    methods.TxRollback: on_tx.rollback,
}
