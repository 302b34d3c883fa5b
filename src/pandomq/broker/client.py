"""A client: one connection that has logged in to a vhost."""

from typing import TYPE_CHECKING, Any, ClassVar

from pandomq import kernel
from pandomq.broker.channel import Channel
from pandomq.fieldtable import FieldTable, decode_table, encode_table

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.named_producers import NamedProducer
    from pandomq.broker.permissions import Access
    from pandomq.broker.queue import Queue
    from pandomq.broker.quotas import Tally
    from pandomq.broker.vhost import Vhost


class Client:
    """`session` is the kernel's; whoever drives the broker writes what it takes from it to the socket."""

    proxied: ClassVar[bool] = False
    """What it asks is answered by another broker."""

    __slots__ = (
        "_private_queues",
        "_properties",
        "access",
        "awaited_channel",
        "awaited_queue",
        "awaits_outlets",
        "broker",
        "cancel_notify",
        "channel_max",
        "channels",
        "connected_ms",
        "counted",
        "failed",
        "gone",
        "held_bytes",
        "identity",
        "named_producers",
        "number",
        "origin",
        "peer",
        "session",
        "tally",
        "trunk",
        "uncommitted_count",
        "user",
        "vhost",
    )

    def __init__(
        self,
        broker: "Broker",
        number: int,
        *,
        user: str,
        vhost: "Vhost",
        access: "Access",
        tally: "Tally",
        counted: bool,
        origin: str | None,
        trunk: bool,
        identity: int,
        peer: str,
        client_properties: FieldTable,
        frame_max: int,
        channel_max: int,
        now_ms: int,
    ) -> None:
        self.broker = broker
        self.number = number
        self.user = user
        self.vhost = vhost
        self.access = access
        self.tally = tally
        self.counted = counted
        self.origin = origin
        """The broker that it is a client of; None: of this one."""
        self.trunk = trunk
        """It is that broker itself: here it has an outlet, and the names of its private queues."""
        self.identity = identity
        """Tells its connection from all others, at this root and the next ones, and from older ones to the same broker;
        0 until somebody has to know it."""
        self.named_producers: dict[bytes, NamedProducer] | None = None
        """Those that it publishes as, by what it calls them; most are none."""
        self.peer = peer
        # Thousands of connections keep the same few properties: encoded they take a tenth of the room.
        self._properties = encode_table(client_properties)
        self.cancel_notify = _capability(client_properties, "consumer_cancel_notify")
        self.channel_max = channel_max
        self.connected_ms = now_ms
        self.channels: dict[int, Channel] = {}
        self._private_queues: dict[Queue, None] | None = None
        self.failed = False
        """The connection is being closed for a fault: nothing it sends counts any more."""
        self.uncommitted_count = 0
        """Transactions that the log does not have yet: what the client says next would not see them, so it waits."""
        self.awaited_queue: kernel.Queue | None = None
        """Where it asked for a message that is not in memory; it is asked again when it is."""
        self.awaited_channel: Channel | None = None
        """On which it asked for a message while replies waited for the log; it is asked again when they are out."""
        self.awaits_outlets = False
        """It has published something while publishes wait."""
        self.gone = False
        self.held_bytes = 0
        """Of replies that wait for the log."""
        self.session = kernel.Session(
            broker.engine, self, access.routes_of(origin), frame_max, broker.limits.outgoing_bytes_max
        )
        if vhost.trace is not None:
            self.follow_trace(vhost.trace)

    @property
    def properties(self) -> FieldTable:
        return decode_table(self._properties)[0]

    def follow_trace(self, trace: kernel.Trace | None) -> None:
        """What it publishes is gathered there, and so is what it consumes, under its name."""
        self.session.trace = trace
        self.session.label = self.peer.encode("utf-8", "surrogateescape")

    @property
    def asks_again(self) -> bool:
        """What it has just asked cannot be answered yet."""
        return self.awaited_queue is not None or self.awaited_channel is not None

    def ask_again(self) -> None:
        """With the next batch, whether there is a message for it or not."""
        self.awaited_queue = self.awaited_channel = None

    @property
    def waits(self) -> bool:
        """What it says next is not for now."""
        queue, channel = self.awaited_queue, self.awaited_channel
        return (
            bool(self.uncommitted_count)
            or (queue is not None and queue.head_missing)
            or (channel is not None and channel.held_count > 0)
            or (self.awaits_outlets and self.broker.held.publishes_wait)
        )

    @property
    def unwritten_bytes(self) -> int:
        """What it was answered and has not been taken for writing."""
        return self.session.pending_bytes + self.held_bytes

    def forget_channel(self, channel: Channel) -> None:
        channel.part_from_kernel()
        del self.channels[channel.number]
        self.tally.channel_count -= 1

    @property
    def private_queues(self) -> "list[Queue]":
        """The exclusive queues, in the order of their declaration."""
        return list(self._private_queues or ())

    def add_private_queue(self, queue: "Queue") -> None:
        if self._private_queues is None:
            self._private_queues = {}
        self._private_queues[queue] = None

    def remove_private_queue(self, queue: "Queue") -> None:
        if self._private_queues is not None:
            self._private_queues.pop(queue, None)


def _capability(properties: dict[str, Any], name: str) -> bool:
    capabilities = properties.get("capabilities")
    return isinstance(capabilities, dict) and capabilities.get(name) is True
