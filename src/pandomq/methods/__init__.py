"""Every AMQP 0-9-1 method, in RabbitMQ's version of the protocol, as a frozen struct.

`METHODS` maps class and method id to a method. The layout on the wire is data (see `layout`), from which `wire.codec`
compiles readers and writers; this package does not handle bytes.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from pandomq.methods.basic import (
    BasicAck,
    BasicCancel,
    BasicCancelOk,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGet,
    BasicGetEmpty,
    BasicGetOk,
    BasicHeld,
    BasicNack,
    BasicPublish,
    BasicQos,
    BasicQosOk,
    BasicRecover,
    BasicRecoverAsync,
    BasicRecoverOk,
    BasicReject,
    BasicReturn,
    BasicSettle,
    BasicSettleOk,
)
from pandomq.methods.channel import (
    AccessRequest,
    AccessRequestOk,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlow,
    ChannelFlowOk,
    ChannelOpen,
    ChannelOpenOk,
)
from pandomq.methods.connection import (
    ConnectionBlocked,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionSecure,
    ConnectionSecureOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    ConnectionUnblocked,
    ConnectionUpdateSecret,
    ConnectionUpdateSecretOk,
)
from pandomq.methods.exchange import (
    ExchangeBind,
    ExchangeBindOk,
    ExchangeDeclare,
    ExchangeDeclareOk,
    ExchangeDelete,
    ExchangeDeleteOk,
    ExchangeUnbind,
    ExchangeUnbindOk,
)
from pandomq.methods.layout import (
    Field,
    Method,
    WireType,
)
from pandomq.methods.queue import (
    QueueBind,
    QueueBindOk,
    QueueDeclare,
    QueueDeclareOk,
    QueueDelete,
    QueueDeleteOk,
    QueuePurge,
    QueuePurgeOk,
    QueueUnbind,
    QueueUnbindOk,
)
from pandomq.methods.tx import (
    ConfirmSelect,
    ConfirmSelectOk,
    TxCommit,
    TxCommitOk,
    TxRollback,
    TxRollbackOk,
    TxSelect,
    TxSelectOk,
)

METHODS: Final[Mapping[tuple[int, int], type[Method]]] = {
    (cls.class_id, cls.method_id): cls for cls in Method.__subclasses__()
}
"""Every method by class and method id."""


class MethodInput(NamedTuple):
    """A method that arrived on a channel; publishes and settlements arrive as the kernel's runs instead."""

    channel: int
    method: Method


__all__ = [
    "METHODS",
    "AccessRequest",
    "AccessRequestOk",
    "BasicAck",
    "BasicCancel",
    "BasicCancelOk",
    "BasicConsume",
    "BasicConsumeOk",
    "BasicDeliver",
    "BasicGet",
    "BasicGetEmpty",
    "BasicGetOk",
    "BasicHeld",
    "BasicNack",
    "BasicPublish",
    "BasicQos",
    "BasicQosOk",
    "BasicRecover",
    "BasicRecoverAsync",
    "BasicRecoverOk",
    "BasicReject",
    "BasicReturn",
    "BasicSettle",
    "BasicSettleOk",
    "ChannelClose",
    "ChannelCloseOk",
    "ChannelFlow",
    "ChannelFlowOk",
    "ChannelOpen",
    "ChannelOpenOk",
    "ConfirmSelect",
    "ConfirmSelectOk",
    "ConnectionBlocked",
    "ConnectionClose",
    "ConnectionCloseOk",
    "ConnectionOpen",
    "ConnectionOpenOk",
    "ConnectionSecure",
    "ConnectionSecureOk",
    "ConnectionStart",
    "ConnectionStartOk",
    "ConnectionTune",
    "ConnectionTuneOk",
    "ConnectionUnblocked",
    "ConnectionUpdateSecret",
    "ConnectionUpdateSecretOk",
    "ExchangeBind",
    "ExchangeBindOk",
    "ExchangeDeclare",
    "ExchangeDeclareOk",
    "ExchangeDelete",
    "ExchangeDeleteOk",
    "ExchangeUnbind",
    "ExchangeUnbindOk",
    "Field",
    "Method",
    "MethodInput",
    "QueueBind",
    "QueueBindOk",
    "QueueDeclare",
    "QueueDeclareOk",
    "QueueDelete",
    "QueueDeleteOk",
    "QueuePurge",
    "QueuePurgeOk",
    "QueueUnbind",
    "QueueUnbindOk",
    "TxCommit",
    "TxCommitOk",
    "TxRollback",
    "TxRollbackOk",
    "TxSelect",
    "TxSelectOk",
    "WireType",
]
