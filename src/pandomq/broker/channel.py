"""The broker's side of a channel: its settings, and the order of its output.

The kernel counts its publishes and keeps its unacked messages; this module has the rest. A channel that the broker
closed stays in the state `closing`, and ignores everything but close and close-ok, until the client has confirmed.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.errors import not_found

if TYPE_CHECKING:
    from pandomq.broker.client import Client
    from pandomq.broker.log.held_replies import HeldReply
    from pandomq.broker.publishing.producers import Numbering
    from pandomq.broker.publishing.transactions import Transaction
    from pandomq.broker.queues.queue import Queue
    from pandomq.methods import Method

_NOTHING_HELD: Final[Mapping[str, int]] = MappingProxyType({})
_NO_CONSUMERS: Final[Mapping[str, kernel.Consumer]] = MappingProxyType({})


class Channel:
    __slots__ = (
        "_consumers",
        "client",
        "closing",
        "held_after",
        "held_before",
        "held_count",
        "kernel",
        "last_queue",
        "number",
        "numbering",
        "prefetch_count",
        "reply_queue",
        "timeout_ms",
        "transaction",
    )

    def __init__(self, client: "Client", number: int) -> None:
        self.client = client
        self.number = number
        self.kernel: kernel.Channel = kernel.Channel(client.session, number, self)
        self.closing = False
        self.last_queue = ""
        """The meaning of an empty queue name."""
        self.prefetch_count = 0
        """For consumers that are added later."""
        self._consumers: dict[str, kernel.Consumer] | None = None
        self.transaction: Transaction | None = None
        self.numbering: Numbering | None = None
        """For clients of other brokers, if those named one."""
        self.reply_queue: Queue | None = None
        """The queue for answers to amq.rabbitmq.reply-to."""
        self.timeout_ms = 0
        """The shortest acknowledgement timeout of its consumers; 0 if there is no limit."""
        self.held_count = 0
        """Replies that wait."""
        self.held_after: int = 0
        """The number of the last publish before the last of these replies."""
        self.held_before: Mapping[str, int] = _NOTHING_HELD
        """By the tag of the consumer: deliveries of earlier roots that the client has not settled."""

    @property
    def consumers(self) -> Mapping[str, kernel.Consumer]:
        return _NO_CONSUMERS if self._consumers is None else self._consumers

    def add_consumer(self, tag: str, consumer: kernel.Consumer) -> None:
        # Most channels have at most one consumer: the dictionary is made with the first.
        if self._consumers is None:
            self._consumers = {}
        self._consumers[tag] = consumer
        self.client.broker.consumer_count += 1

    def pop_consumer(self, tag: str) -> kernel.Consumer | None:
        consumer = None if self._consumers is None else self._consumers.pop(tag, None)
        if consumer is not None:
            self.client.broker.consumer_count -= 1
        return consumer

    def part_from_kernel(self) -> None:
        """The channel has ended. Cycles are broken where something ends: the garbage collector hardly ever runs."""
        self.kernel.owner = None

    def queue_name(self, name: str) -> str:
        """The name that a client gave, or for an empty one the queue that was last declared here."""
        name = name or self.last_queue
        if not name:
            raise not_found("no previously declared queue")
        return name

    # Output, in order.

    def reply(self, method: "Method") -> None:
        client = self.client
        octets = client.broker.encode(self.number, method)
        if self.held_count:
            client.broker.held.hold(self, octets)
        else:
            client.session.write(octets)

    def reply_when_settled(self, method: "Method") -> None:
        """A reply about shared state: it waits until the last change of that is committed, and in force everywhere."""
        client = self.client
        broker = client.broker
        octets = broker.encode(self.number, method)
        if self.held_count or broker.held.commands_unsettled:
            broker.held.hold(self, octets, shared=True)
        else:
            client.session.write(octets)

    def reply_when_committed(self, method: "Method") -> None:
        """A reply that promises the batch's effects on messages."""
        broker = self.client.broker
        broker.held.hold(self, broker.encode(self.number, method))

    def reply_with_content(self, method: "Method", message: kernel.Message, more: bytes = b"") -> None:
        """`more` is for other brokers, behind the method's arguments."""
        broker = self.client.broker
        payload = broker.encode_payload(method) + more
        if self.held_count:
            broker.held.hold(self, payload, message)
        else:
            self.client.session.write_content(self.number, payload, message)

    def send_held(self, reply: "HeldReply") -> None:
        self.held_count -= 1
        self.client.held_bytes -= reply.size_bytes
        if self.client.gone:
            return
        if reply.content is None:
            self.client.session.write(reply.octets)
        else:
            self.client.session.write_content(self.number, reply.octets, reply.content)
        if not self.held_count and not self.closing:
            self.kernel.release()
