"""Closing what a fault concerns: a channel, or the whole connection.

A fault may be found in the middle of a run, while the kernel works on the channel. So the channel stops counting at
once, and is taken apart after the run (`finish`). What a connection's fault means for its socket is the caller's
business: it is named in the batch's outcome.
"""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.removal import leave_channel, leave_client
from pandomq.methods import ChannelClose

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client
    from pandomq.errors import ChannelFault, ConnectionFault


class Faults:
    __slots__ = ("_broker", "_channels", "_clients", "_closing")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._channels: list[Channel] = []
        self._clients: list[Client] = []
        self._closing: list[tuple[Client, ConnectionFault]] = []

    def close_channel(self, channel: "Channel", fault: "ChannelFault") -> None:
        if channel.closing or channel.client.failed:
            return
        channel.closing = True
        channel.kernel.open = False
        channel.reply(ChannelClose(fault.reply_code, fault.reply_text, fault.class_id, fault.method_id))
        self._channels.append(channel)

    def close_client(self, client: "Client", fault: "ConnectionFault") -> None:
        if client.failed:
            return
        client.failed = True
        for channel in client.channels.values():
            channel.kernel.open = False
        self._closing.append((client, fault.kept()))
        self._clients.append(client)

    def finish(self) -> None:
        """Outside of any run."""
        if not self._channels and not self._clients:
            return
        channels, clients = self._channels, self._clients
        self._channels, self._clients = [], []
        for channel in channels:
            leave_channel(self._broker, channel)
            # What the client still sends on this number is passed over by a channel that only stands for it.
            channel.kernel = kernel.Channel(channel.client.session, channel.number, channel)
            channel.kernel.open = False
        for client in clients:
            leave_client(self._broker, client)

    def take_closing(self) -> "tuple[tuple[Client, ConnectionFault], ...]":
        """Connections to be closed, with the reason."""
        closing = tuple(self._closing)
        self._closing.clear()
        return closing
