"""Class confirm."""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.errors import precondition_failed
from pandomq.methods import ConfirmSelect, ConfirmSelectOk

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel


def select(broker: "Broker", channel: "Channel", method: ConfirmSelect) -> None:
    if channel.transaction is not None:
        raise precondition_failed("cannot switch from tx to confirm mode")
    if channel.kernel.mode != kernel.CONFIRM:
        channel.kernel.mode = kernel.CONFIRM
        if channel.numbering is not None:
            broker.producers.number_publishes(channel)
    if not method.no_wait:
        channel.reply(ConfirmSelectOk())
