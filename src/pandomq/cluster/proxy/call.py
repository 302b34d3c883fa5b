"""What a client has asked and waits for. It says nothing else until that is answered: one call at a time."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq.errors import ChannelFault, ConnectionFault
from pandomq.methods import ChannelClose, TxCommit

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.lane import Then
    from pandomq.cluster.proxy.trunk import Trunk
    from pandomq.methods import Method


class Call:
    """By the client's own tunnel (then `method` is asked again should the tunnel break), by the trunk of its vhost, or
    by neither: then it waits for the feed."""

    __slots__ = ("_then", "channel", "method", "on_abandoned", "trunk")

    def __init__(
        self, channel: "FrontChannel", *, method: "Method | None" = None, then: "Then", trunk: "Trunk | None" = None
    ) -> None:
        self.channel = channel
        self.method = method
        self.trunk = trunk
        self._then = then
        self.on_abandoned: Callable[[], None] | None = None
        """What is to be undone if nobody waits for it any more."""

    def abandon(self) -> None:
        """Its client, or its channel, is gone."""
        if self.alive:
            self.channel.client.call = None
            if self.on_abandoned is not None:
                self.on_abandoned()

    @property
    def is_commit(self) -> bool:
        return isinstance(self.method, TxCommit)

    @property
    def is_close(self) -> bool:
        return isinstance(self.method, ChannelClose)

    @property
    def alive(self) -> bool:
        """Its client still waits for it."""
        return self.channel.client.call is self

    def answer(self, method: "Method", message: "kernel.Message | None" = None) -> None:
        self.end(lambda: self._then(method, message))

    def end(self, then: Callable[[], None]) -> None:
        """By what happens here. Does nothing if nobody waits any more."""
        if not self.alive:
            return
        client = self.channel.client
        client.call = None
        try:
            then()
        except ChannelFault as fault:
            client.broker.faults.close_channel(self.channel, fault)
        except ConnectionFault as fault:
            client.broker.faults.close_client(client, fault)
