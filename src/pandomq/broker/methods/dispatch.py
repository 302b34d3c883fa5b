"""Which function handles which method."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from pandomq import methods
from pandomq.broker.log import earlier_deliveries, places
from pandomq.broker.methods import on_basic, on_channel, on_confirm, on_exchange, on_queue, on_tx

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel

Handler = Callable[["Broker", "Channel", Any], None]
"""Raises ChannelFault or ConnectionFault; the caller adds the ids of the method."""

HANDLERS: Final[Mapping[type[methods.Method], Handler]] = {
    methods.ChannelOpen: on_channel.open_again,
    methods.ChannelClose: on_channel.close,
    methods.ChannelFlow: on_channel.flow,
    methods.AccessRequest: on_channel.access_request,
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
    methods.BasicCancelOk: on_basic.cancel_ok,
    methods.BasicGet: on_basic.get,
    methods.BasicRecover: on_basic.recover,
    methods.BasicRecoverAsync: on_basic.recover_async,
    methods.BasicSettle: places.settle,
    methods.BasicHeld: earlier_deliveries.note_held,
    methods.TxSelect: on_tx.select,
    methods.TxCommit: on_tx.commit,
    methods.TxRollback: on_tx.rollback,
    methods.ConfirmSelect: on_confirm.select,
}
