"""The broker's side of a channel: what was agreed on it, and the order of what is said on it.

The kernel counts its publishes and keeps its unacked messages; here is the rest. A channel that the broker closed
stays in the state `closing`, deaf to everything but close and close-ok, until the client has agreed.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pandomq import kernel
from pandomq.errors import not_found

if TYPE_CHECKING:
    from pandomq.broker.client import Client
    from pandomq.broker.held_replies import HeldReply
    from pandomq.broker.producers import Numbering
    from pandomq.broker.queue import Queue
    from pandomq.broker.transactions import Transaction
    from pandomq.methods import Method

_NO_CONSUMERS: Final[Mapping[str, kernel.Consumer]] = MappingProxyType({})


class Channel:
    __slots__ = (
        "_consumers",
        "client",
        "closing",
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
        """What an empty queue name means."""
        self.prefetch_count = 0
        """Of consumers yet to come."""
        self._consumers: dict[str, kernel.Consumer] | None = None
        self.transaction: Transaction | None = None
        self.numbering: Numbering | None = None
        """Of clients of other brokers, if those named one."""
        self.reply_queue: Queue | None = None
        """Where the answers to amq.rabbitmq.reply-to come."""
        self.timeout_ms = 0
        """The shortest time that one of its consumers may take to acknowledge; 0 if there is no limit."""
        self.held_count = 0

    @property
    def consumers(self) -> Mapping[str, kernel.Consumer]:
        return _NO_CONSUMERS if self._consumers is None else self._consumers

    def add_consumer(self, tag: str, consumer: kernel.Consumer) -> None:
        # Most channels have none or one for all their life: the dictionary comes with the first.
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
        """It is over. Cycles are broken where something ends: the collector hardly ever looks for any."""
        self.kernel.owner = None

    def queue_name(self, name: str) -> str:
        """The name a client gave, or for an empty one the queue that was last declared here."""
        name = name or self.last_queue
        if not name:
            raise not_found("no previously declared queue")
        return name

    # What is said, in order.

    def reply(self, method: "Method") -> None:
        client = self.client
        octets = client.broker.encode(self.number, method)
        if self.held_count:
            client.broker.held.hold(self, octets)
        else:
            client.session.write(octets)

    def reply_when_settled(self, method: "Method") -> None:
        """A reply that speaks of shared state: it waits until the last change of that is committed, and in force
        everywhere."""
        client = self.client
        broker = client.broker
        octets = broker.encode(self.number, method)
        if self.held_count or broker.held.commands_unsettled:
            broker.held.hold(self, octets, shared=True)
        else:
            client.session.write(octets)

    def reply_when_committed(self, method: "Method") -> None:
        """A reply that promises what this batch did to messages."""
        broker = self.client.broker
        broker.held.hold(self, broker.encode(self.number, method))

    def reply_with_content(self, method: "Method", message: kernel.Message, more: bytes = b"") -> None:
        """More is for other brokers, behind the method's arguments."""
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
