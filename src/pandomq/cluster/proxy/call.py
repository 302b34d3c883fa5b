"""A client's request that is not answered yet. A client has one call at a time, and its next requests wait for the
answer."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pandomq.errors import ChannelFault, ConnectionFault
from pandomq.methods import ChannelClose, TxCommit

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.lane import Then
    from pandomq.cluster.proxy.private.trunk import Trunk
    from pandomq.methods import Method


class Call:
    """The request of the client's own tunnel (then `method` is sent again if the tunnel breaks), of the trunk of its
    vhost, or of neither: then the call waits for the feed."""

    __slots__ = ("_then", "channel", "method", "on_abandoned", "trunk")

    def __init__(
        self, channel: "FrontChannel", *, method: "Method | None" = None, then: "Then", trunk: "Trunk | None" = None
    ) -> None:
        self.channel = channel
        self.method = method
        self.trunk = trunk
        self._then = then
        self.on_abandoned: Callable[[], None] | None = None
        """Undoes what has to be undone if the client no longer waits."""

    def abandon(self) -> None:
        """The client, or its channel, has closed."""
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
        """The client still waits for the answer."""
        return self.channel.client.call is self

    def answer(self, method: "Method", message: "kernel.Message | None" = None) -> None:
        self.end(lambda: self._then(method, message))

    def end(self, then: Callable[[], None]) -> None:
        """Ends the call by running `then`. Does nothing if the client no longer waits."""
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
