"""Messages that wait for their time in an exchange of type x-delayed-message.

Each such exchange has one DelayedMessages (`exchange.waiting`), a destination like a queue, over a hidden kernel queue
without consumers: so waiting messages are logged, confirmed and restored like everything else. The order of time is
kept beside it, in a heap.

In a tick the caller takes what is `due`, which logs the dequeue, routes it from the exchange and enqueues it. As that
happens in one batch, one log entry holds both: no crash in between can lose or double a message.
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import ClassVar, Final

import msgspec

from pandomq.broker.exchanges.exchange import QueueDestination
from pandomq.fieldtable import Int32, OctetString, Timestamp
from pandomq.kernel import NEVER_MS, Channel, Engine, Message, Queue
from pandomq.limits import DELAY_MS_MAX, EXPIRATION_MS_MAX
from pandomq.properties import decode_header, encode_header, read_headers, replace_headers

X_DELAY: Final = "x-delay"
DUE_MESSAGES_MAX: Final = 1000
"""The maximum that one call of `due` takes: a flood of messages due at once is handled in several batches."""

_X_EXPIRATION: Final = "x-pandomq-delayed-expiration"
"""Carries the expiration of a message while it waits: its time to live begins when it is routed."""

_INT32_MIN: Final = -(2**31)
_DIGITS_MAX: Final = 20


class DelayedMessages:
    """`kernel` is logged if the exchange is durable, and takes part in nothing else: no limits, consumers, or pages."""

    __slots__ = ("_heap", "exchange_name", "kernel")

    stream: ClassVar[None] = None
    """Queues have the same attribute."""

    def __init__(self, exchange_name: str, kernel: Queue) -> None:
        self.exchange_name = exchange_name
        self.kernel = kernel
        self._heap: list[tuple[int, int]] = []  # due time, sequence

    @property
    def name(self) -> str:
        return self.exchange_name

    def delay(self, engine: Engine, channel: Channel | None, message: Message, now_ms: int) -> None:
        """Keeps the message for the time of its x-delay."""
        sequence = self.kernel.next_sequence
        engine.enqueue(channel, set_expiration_aside(message), (self.kernel,), 0, now_ms)
        self.restored(sequence, message, now_ms)

    def restored(self, sequence: int, message: Message, enqueued_ms: int) -> None:
        """The message is in `kernel` under this sequence since that batch's time. Replay calls this after restoring."""
        heappush(self._heap, (due_ms(message, enqueued_ms), sequence))
        # A broker that only replays never calls `due`: messages leave `kernel` without the heap's knowledge.
        if len(self._heap) > 2 * self.kernel.ready_count + DUE_MESSAGES_MAX:
            present = {entry[0] for entry in self.kernel.snapshot()}
            self._heap = [entry for entry in self._heap if entry[1] in present]
            heapify(self._heap)

    def reinstated(self, sequence: int, at_ms: int) -> None:
        """The message is in `kernel` under this sequence again, and due then."""
        heappush(self._heap, (at_ms, sequence))

    def due_times(self) -> dict[int, int]:
        """The due times by sequence; also of messages that have left `kernel`."""
        return {sequence: at_ms for at_ms, sequence in self._heap}

    def due(self, now_ms: int) -> list[Message]:
        """Takes messages whose time has come, in the order of their times, as they are to be routed now.

        Their x-delay is negated, so that no exchange delays them again and consumers see that they were.
        """
        messages: list[Message] = []
        while self._heap and self._heap[0][0] <= now_ms and len(messages) < DUE_MESSAGES_MAX:
            _, sequence = heappop(self._heap)
            message = self.kernel.withdraw(sequence)
            # Replay may have dropped it since: then it was due before.
            if message is not None:
                messages.append(_released(message))
        return messages

    @property
    def next_due_ms(self) -> int:
        """NEVER_MS if nothing waits."""
        return self._heap[0][0] if self._heap else NEVER_MS


def enqueue(
    engine: Engine,
    channel: Channel | None,
    message: Message,
    destinations: Sequence[QueueDestination],
    flags: int,
    now_ms: int,
) -> bool:
    """Engine.enqueue for the result of `Router.route`, where DelayedMessages may be among the queues."""
    queues = [destination.kernel for destination in destinations if not isinstance(destination, DelayedMessages)]
    stored = True
    if len(queues) == len(destinations):
        return engine.enqueue(channel, message, queues, flags, now_ms)
    for destination in destinations:
        if isinstance(destination, DelayedMessages):
            destination.delay(engine, channel, message, now_ms)
    # A waiting message is not unroutable, so it is not returned for lack of other queues.
    if queues:
        stored = engine.enqueue(channel, message, queues, flags, now_ms)
    return stored


def delay_ms(headers: Mapping[str, object]) -> int:
    """How long a message with these headers has to wait; 0 if not at all.

    As in the plugin for RabbitMQ: strings of digits and floats are accepted, delays beyond the limit do not delay.
    """
    value = headers.get(X_DELAY)
    if isinstance(value, str | OctetString):
        value = int(value) if _is_number(value) else 0
    elif isinstance(value, float):
        value = int(value) if abs(value) <= DELAY_MS_MAX else 0
    if not isinstance(value, int) or isinstance(value, bool | Timestamp):
        return 0
    return int(value) if 0 < value <= DELAY_MS_MAX else 0


def _is_number(text: str | bytes) -> bool:
    """A longer text is beyond every limit, and Python reads no number of thousands of digits."""
    return len(text) <= _DIGITS_MAX and text.isdigit() and text.isascii()


def due_ms(message: Message, enqueued_ms: int) -> int:
    """The time when a message that waits since `enqueued_ms` is due."""
    return enqueued_ms + delay_ms(read_headers(message.header))


def set_expiration_aside(message: Message) -> Message:
    """The message in the form in which it waits."""
    if message.expiration_ms < 0:
        return message
    body_size, properties = decode_header(message.header)
    headers = {**(properties.headers or {}), _X_EXPIRATION: properties.expiration}
    kept = msgspec.structs.replace(properties, headers=headers, expiration=None)
    return Message(message.routing, encode_header(body_size, kept), message.body)


def _released(message: Message) -> Message:
    headers = read_headers(message.header)
    delay = -delay_ms(headers)
    headers[X_DELAY] = Int32(delay) if delay >= _INT32_MIN else delay
    expiration = headers.pop(_X_EXPIRATION, None)
    # Any publisher can write a header of this name, with any value.
    if not isinstance(expiration, str) or not _is_number(expiration) or int(expiration) > EXPIRATION_MS_MAX:
        return Message(message.routing, replace_headers(message.header, headers), message.body)
    body_size, properties = decode_header(message.header)
    released = msgspec.structs.replace(properties, headers=headers, expiration=expiration)
    return Message(message.routing, encode_header(body_size, released), message.body)
