"""Closes what a fault concerns: a channel, or the whole connection.

A fault may be found in the middle of a run, while the kernel works on the channel. So the channel stops counting at
once, and is taken apart after the run (`finish`). The batch's outcome names a connection with a fault, and the caller
handles its socket.
"""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.publishing.returns import return_unroutable
from pandomq.broker.queues.removal import release_channel, release_client
from pandomq.errors import ConnectionFault
from pandomq.methods import ChannelClose

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client
    from pandomq.errors import ChannelFault


class Faults:
    __slots__ = ("_broker", "_channels", "_clients", "_closing", "passed_over")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._channels: list[Channel] = []
        self._clients: list[Client] = []
        self._closing: list[tuple[Client, ConnectionFault]] = []
        self.passed_over = 0
        """Faults of channels that are closed already, or of a client that is none (`staging.frames`)."""

    def close(self, client: "Client", channel: "Channel | None", fault: "ChannelFault | ConnectionFault") -> None:
        """Closes what the fault concerns."""
        if isinstance(fault, ConnectionFault):
            self.close_client(client, fault)
        else:
            assert channel is not None
            self.close_channel(channel, fault)

    def close_channel(self, channel: "Channel", fault: "ChannelFault") -> None:
        if channel.closing or channel.client.failed:
            self.passed_over += 1
            return
        self._return_first()
        channel.closing = True
        channel.kernel.open = False
        self._channels.append(channel)
        channel.reply(ChannelClose(fault.reply_code, fault.reply_text, fault.class_id, fault.method_id))

    def close_client(self, client: "Client", fault: "ConnectionFault") -> None:
        if client.failed:
            return
        self._return_first()
        client.failed = True
        for channel in client.channels.values():
            channel.kernel.open = False
        self._closing.append((client, fault.kept()))
        self._clients.append(client)

    def _return_first(self) -> None:
        """Messages published before the fault are returned before the close, also if both came in one read."""
        if self._broker.engine.returned:
            return_unroutable(self._broker)

    def finish(self) -> None:
        """To be called outside of any run."""
        if not self._channels and not self._clients:
            return
        # If an exception comes, channels that are not taken apart yet would be forgotten.
        self._broker.commands_changed += 1
        channels, clients = self._channels, self._clients
        self._channels, self._clients = [], []
        for channel in channels:
            release_channel(self._broker, channel)
            # A placeholder channel ignores what the client still sends on this number.
            channel.kernel = kernel.Channel(channel.client.session, channel.number, channel)
            channel.kernel.open = False
        for client in clients:
            release_client(self._broker, client)

    def take_closing(self) -> "tuple[tuple[Client, ConnectionFault], ...]":
        """Connections to be closed, with the reason."""
        closing = tuple(self._closing)
        self._closing.clear()
        return closing
