"""Where the kernel asks the front in the middle of a run."""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.hooks import BASIC, PUBLISH, BrokerHooks
from pandomq.cluster.proxy.publishing import fan_out, publish
from pandomq.errors import ChannelFault, ConnectionFault

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.trunk import Trunk


class FrontHooks(BrokerHooks):
    __slots__ = ("_front",)

    def __init__(self, front: "Front") -> None:
        super().__init__(front)
        self._front = front

    def publish(self, channel: kernel.Channel, message: kernel.Message, flags: int) -> None:
        owner: FrontChannel = channel.owner
        try:
            publish(self._front, owner, message, flags)
        except ChannelFault as fault:
            fault.at(BASIC, PUBLISH)
            self._front.faults.close_channel(owner, fault)
        except ConnectionFault as fault:
            fault.at(BASIC, PUBLISH)
            self._front.faults.close_client(owner.client, fault)

    def fan_out(self, owner: "Trunk", message: kernel.Message) -> None:
        fan_out(self._front, owner, message)
