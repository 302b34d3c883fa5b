"""Class channel, and the old class access."""

from typing import TYPE_CHECKING

from pandomq.broker.administration.quotas import channel_refusal
from pandomq.broker.queues.removal import release_channel
from pandomq.errors import channel_error, not_implemented
from pandomq.methods import (
    AccessRequest,
    AccessRequestOk,
    ChannelClose,
    ChannelCloseOk,
    ChannelFlow,
    ChannelFlowOk,
    ChannelOpen,
    ChannelOpenOk,
    Method,
)

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client


def open_channel(broker: "Broker", client: "Client", number: int, method: Method) -> None:
    """Input on a channel that is not open."""
    refusal = channel_refusal(client)
    if refusal is not None:
        # RabbitMQ counts before it reads the method, so it names none.
        broker.faults.close_client(client, refusal)
        return
    if not isinstance(method, ChannelOpen):
        raise channel_error("expected 'channel.open'")
    channel = client.channels[number] = broker.channel_type(client, number)
    client.tally.channel_count += 1
    if client.origin is None or not method.out_of_band:
        channel.reply(ChannelOpenOk())
    else:
        known = broker.producers.open(channel, method.out_of_band)
        # Its facts about earlier batches must not be sent before those are committed.
        channel.reply_when_committed(ChannelOpenOk(b"%d" % known))


def agree(broker: "Broker", channel: "Channel", method: Method) -> None:
    """The broker has closed the channel. The client's inputs before its close-ok are ignored."""
    if isinstance(method, ChannelCloseOk):
        channel.kernel.close(broker.now_ms)
        channel.client.forget_channel(channel)
    elif isinstance(method, ChannelClose):
        channel.reply(ChannelCloseOk())


def open_again(broker: "Broker", channel: "Channel", method: ChannelOpen) -> None:
    """The first one made the channel; on an open channel it is an error."""
    raise channel_error("second 'channel.open' seen")


def close(broker: "Broker", channel: "Channel", method: ChannelClose) -> None:
    release_channel(broker, channel)
    channel.client.forget_channel(channel)
    channel.closing = True
    channel.reply(ChannelCloseOk())


def flow(broker: "Broker", channel: "Channel", method: ChannelFlow) -> None:
    if not method.active:
        raise not_implemented("active=false")
    channel.reply(ChannelFlowOk(True))


def access_request(broker: "Broker", channel: "Channel", method: AccessRequest) -> None:
    channel.reply(AccessRequestOk(1))
