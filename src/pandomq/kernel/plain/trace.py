"""Events of messages of traced queues, collected row by row until the caller takes them in columns (trace_form.py).

The sequence of a message decides whether it is traced, so that every step of a traced message is recorded. Events
beyond the limit are counted. Names go to tables of those that occur since the last `take`.
"""

import struct
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq.kernel.constants import CONFIRM, EXPIRED, TRACED_UNCONFIRMED_MAX
from pandomq.trace_form import COLUMNS, EVENT_BYTES, UNKNOWN_US, Kind, Reason, is_sampled

if TYPE_CHECKING:
    from pandomq.kernel.plain.channel import Channel
    from pandomq.kernel.plain.consumer import Consumer
    from pandomq.kernel.plain.engine import Engine
    from pandomq.kernel.plain.message import Message
    from pandomq.kernel.plain.queue_exits import QueueExits
    from pandomq.kernel.plain.ring import RingEntry
    from pandomq.kernel.plain.window import Unacked

SIZE_MAX: Final = 2**32 - 1
QUEUE_NAME_BYTES: Final = 10
CONSUMER_NAME_BYTES: Final = 3


class Row(NamedTuple):
    time_us: int
    sequence: int
    since_us: int
    held_us: int
    size: int
    queue: int
    routing: int
    consumer: int
    kind: int
    reason: int


class TracedPublish(NamedTuple):
    """A traced publish that waits for its confirm."""

    number: int
    queue: "QueueExits"
    routing: bytes
    sequence: int
    published_us: int
    size: int


class Trace:
    """See the contract."""

    def __init__(self, engine: "Engine", threshold: int, bytes_max: int) -> None:
        self.engine = engine
        self.threshold = threshold
        self.bytes_max = bytes_max
        self.dropped = 0
        self._begin()

    def _begin(self) -> None:
        self._rows: list[Row] = []
        # Places in the tables; 0 stands for none.
        self._queues: dict[QueueExits, int] = {}
        self._routings: dict[bytes, int] = {}
        self._consumers: dict[Consumer, int] = {}
        self.size_bytes = 0

    @property
    def count(self) -> int:
        return len(self._rows)

    def take(
        self,
    ) -> tuple[int, int, bytes, list[tuple[int, bytes]], list[bytes], list[tuple[bytes, bytes]]]:
        columns = [
            struct.pack(f"<{self.count}{code}", *(getattr(row, name) for row in self._rows)) for name, code in COLUMNS
        ]
        taken = (
            self.count,
            self.dropped,
            b"".join(columns),
            [(queue.queue_id, queue.label) for queue in self._queues],
            list(self._routings),
            [(consumer.channel.session.label, consumer.tag) for consumer in self._consumers],
        )
        self.dropped = 0
        self._begin()
        return taken

    def _samples(self, sequence: int) -> bool:
        return is_sampled(sequence, self.threshold)

    # --- what happens

    def published(self, queue: "QueueExits", message: "Message", sequence: int) -> None:
        if not self._samples(sequence):
            return
        message.traced_us = message.traced_us or self.engine.time_us
        self._add(Kind.PUBLISHED, Reason.NONE, queue, message.routing, None, sequence, message.body_size, 0)
        channel = self.engine.publishing
        if channel is None or channel.mode != CONFIRM:
            return
        if len(channel.traced) >= TRACED_UNCONFIRMED_MAX:
            self.dropped += 1
            return
        channel.traced.append(
            TracedPublish(
                channel.confirms.published, queue, message.routing, sequence, self.engine.time_us, message.body_size
            )
        )

    def unroutable(self, message: "Message") -> None:
        """The engine has counted it."""
        if self._samples(self.engine.unroutable):
            self._add(
                Kind.UNROUTABLE,
                Reason.NONE,
                None,
                message.routing,
                None,
                self.engine.unroutable,
                message.body_size,
                0,
            )

    def refused(self, queue: "QueueExits", message: "Message") -> None:
        """Traces a refused message, which has no sequence and is identified by the number of publishes before it."""
        if self._samples(self.engine.published):
            self._add(Kind.REFUSED, Reason.MAXLEN, queue, message.routing, None, 0, message.body_size, 0)

    def delivered(self, queue: "QueueExits", entry: "RingEntry", consumer: "Consumer | None") -> None:
        self._add_entry(
            Kind.REDELIVERED if entry.redelivered else Kind.DELIVERED,
            Reason.NONE,
            queue,
            entry,
            consumer,
        )

    def read(self, consumer: "Consumer", sequence: int, routing: bytes, size: int, published_us: int) -> None:
        """Read from a stream."""
        if self._samples(sequence):
            since_us = max(0, self.engine.time_us - published_us)
            self._add(Kind.DELIVERED, Reason.NONE, consumer.queue, routing, consumer, sequence, size, since_us)

    def acked(self, unacked: "Unacked") -> None:
        self._add_settled(Kind.ACKED, unacked)

    def requeued(self, unacked: "Unacked") -> None:
        self._add_settled(Kind.REQUEUED, unacked)

    def died(self, queue: "QueueExits", entry: "RingEntry", reason: int, is_letter: bool) -> None:
        kind = Kind.DEAD_LETTERED if is_letter else Kind.EXPIRED if reason == EXPIRED else Kind.DROPPED
        self._add_entry(kind, Reason(reason + 1), queue, entry, None)

    def confirmed(self, traced: TracedPublish) -> None:
        since_us = self.engine.time_us - traced.published_us
        self._add(
            Kind.CONFIRMED,
            Reason.NONE,
            traced.queue,
            traced.routing,
            None,
            traced.sequence,
            traced.size,
            since_us,
        )

    # --- rows

    def _add_settled(self, kind: Kind, unacked: "Unacked") -> None:
        held_us = max(0, self.engine.time_us - unacked.delivered_ms * 1000)
        self._add_entry(kind, Reason.NONE, unacked.queue, unacked.entry, unacked.consumer, held_us)

    def _add_entry(
        self,
        kind: Kind,
        reason: Reason,
        queue: "QueueExits",
        entry: "RingEntry",
        consumer: "Consumer | None",
        held_us: int = UNKNOWN_US,
    ) -> None:
        if self._samples(entry.sequence):
            message = entry.message
            since_us = self.engine.time_us - message.traced_us if message.traced_us else UNKNOWN_US
            size = message.body_size
            self._add(kind, reason, queue, message.routing, consumer, entry.sequence, size, since_us, held_us)

    def _add(
        self,
        kind: Kind,
        reason: Reason,
        queue: "QueueExits | None",
        routing: bytes,
        consumer: "Consumer | None",
        sequence: int,
        size: int,
        since_us: int,
        held_us: int = UNKNOWN_US,
    ) -> None:
        if self.size_bytes + EVENT_BYTES > self.bytes_max:
            self.dropped += 1
            return
        self.size_bytes += EVENT_BYTES
        self._rows.append(
            Row(
                self.engine.time_us,
                sequence,
                since_us,
                held_us,
                min(size, SIZE_MAX),
                self._place_of_queue(queue),
                self._place_of_routing(routing),
                self._place_of_consumer(consumer),
                kind,
                reason,
            )
        )

    def _place_of_queue(self, queue: "QueueExits | None") -> int:
        if queue is None:
            return 0
        if queue not in self._queues:
            self._queues[queue] = len(self._queues) + 1
            self.size_bytes += QUEUE_NAME_BYTES + len(queue.label)
        return self._queues[queue]

    def _place_of_routing(self, routing: bytes) -> int:
        if routing not in self._routings:
            self._routings[routing] = len(self._routings) + 1
            self.size_bytes += len(routing)
        return self._routings[routing]

    def _place_of_consumer(self, consumer: "Consumer | None") -> int:
        if consumer is None:
            return 0
        if consumer not in self._consumers:
            self._consumers[consumer] = len(self._consumers) + 1
            self.size_bytes += CONSUMER_NAME_BYTES + len(consumer.channel.session.label) + len(consumer.tag)
        return self._consumers[consumer]


def settle_traced(channel: "Channel", first: int, last: int, *, confirmed: bool) -> None:
    """The publisher was sent the result for these numbers."""
    waiting: deque[TracedPublish] = deque()
    for traced in channel.traced:
        if not first <= traced.number <= last:
            waiting.append(traced)
        elif confirmed and traced.queue.trace is not None:
            traced.queue.trace.confirmed(traced)
    channel.traced = waiting
