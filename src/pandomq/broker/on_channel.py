"""Class channel, and the old class access."""

from typing import TYPE_CHECKING

from pandomq.broker.removal import leave_channel
from pandomq.errors import channel_error, not_implemented
from pandomq.methods import (
    AccessRequest,
    AccessRequestOk,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlow,
    ChannelFlowOk,
    ChannelOpen,
)

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel


def open_again(broker: "Broker", channel: "Channel", method: ChannelOpen) -> None:
    """The first one made the channel (see `Broker`); on an open channel it is an error."""
    raise channel_error("second 'channel.open' seen")


def close(broker: "Broker", channel: "Channel", method: ChannelClose) -> None:
    leave_channel(broker, channel)
    channel.client.forget_channel(channel)
    channel.closing = True
    channel.reply(ChannelCloseOk())


def flow(broker: "Broker", channel: "Channel", method: ChannelFlow) -> None:
    if not method.active:
        raise not_implemented("active=false")
    channel.reply(ChannelFlowOk(True))


def access_request(broker: "Broker", channel: "Channel", method: AccessRequest) -> None:
    channel.reply(AccessRequestOk(1))
