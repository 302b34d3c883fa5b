"""Faults found on a front: the root is told that a channel is closed, unless it was the root that closed it."""

from typing import TYPE_CHECKING

from pandomq.broker.faults import Faults
from pandomq.cluster.proxy.front_channel import FrontChannel

if TYPE_CHECKING:
    from pandomq.broker.channel import Channel
    from pandomq.errors import ChannelFault


class FrontFaults(Faults):
    __slots__ = ()

    def close_channel(self, channel: "Channel", fault: "ChannelFault") -> None:
        assert isinstance(channel, FrontChannel)
        closes = not channel.closing and not channel.client.failed
        super().close_channel(channel, fault)
        if closes:
            channel.client.close_above(channel)
