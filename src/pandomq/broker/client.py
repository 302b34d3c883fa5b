"""A client: one connection that has logged in to a vhost."""

from typing import TYPE_CHECKING, Any, ClassVar

from pandomq import kernel
from pandomq.broker.channel import Channel
from pandomq.fieldtable import FieldTable, decode_table, encode_table

if TYPE_CHECKING:
    from pandomq.broker.administration.permissions import VhostAccess
    from pandomq.broker.administration.quotas import Tally
    from pandomq.broker.broker import Broker
    from pandomq.broker.publishing.named_producers import NamedProducer
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.vhost import Vhost


class Client:
    """`session` is the kernel's; the driver of the broker writes what it takes from it to the socket."""

    proxied: ClassVar[bool] = False
    """Another broker answers its requests."""

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
        access: "VhostAccess",
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
        """The broker that it is a client of; None: this one."""
        self.trunk = trunk
        """The client is that broker itself: here it has an outlet, and the names of its private queues."""
        self.identity = identity
        """Distinguishes its connection from all others, at this root and the next ones, and from older ones to the same
        broker. It is 0 until it is needed."""
        self.named_producers: dict[bytes, NamedProducer] | None = None
        """The producers as which it publishes, by name; most clients are none."""
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
        """Transactions that the log does not have yet: the client's next request would not see them, so it waits."""
        self.awaited_queue: kernel.Queue | None = None
        """The queue from which it requested a message that is not in memory; the request is repeated when it is."""
        self.awaited_channel: Channel | None = None
        """The channel on which it requested a message while replies waited for the log; repeated when they are sent."""
        self.awaits_outlets = False
        """Whether the client has published something while publishes wait."""
        self.gone = False
        self.held_bytes = 0
        """The bytes of replies that wait for the log."""
        self.session = kernel.Session(
            broker.engine, self, access.routes_of(origin), frame_max, broker.limits.outgoing_bytes_max
        )
        if vhost.trace is not None:
            self.follow_trace(vhost.trace)

    @property
    def properties(self) -> FieldTable:
        return decode_table(self._properties)[0]

    def follow_trace(self, trace: kernel.Trace | None) -> None:
        """The trace collects its publishes and its deliveries, under its name."""
        self.session.trace = trace
        self.session.label = self.peer.encode("utf-8", "surrogateescape")

    @property
    def asks_again(self) -> bool:
        """Its last request cannot be answered yet."""
        return self.awaited_queue is not None or self.awaited_channel is not None

    def ask_again(self) -> None:
        """Repeats the request with the next batch, whether there is a message for it or not."""
        self.awaited_queue = self.awaited_channel = None

    @property
    def waits(self) -> bool:
        """Its next inputs must wait."""
        queue, channel = self.awaited_queue, self.awaited_channel
        return (
            bool(self.uncommitted_count)
            or (queue is not None and queue.head_missing)
            or (channel is not None and channel.held_count > 0)
            or (self.awaits_outlets and self.broker.held.publishes_wait)
        )

    @property
    def unwritten_bytes(self) -> int:
        """Output that has not been taken for writing."""
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
