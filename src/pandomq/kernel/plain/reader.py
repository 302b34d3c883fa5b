"""A consumer's progress through a stream: which chunk it reads, from which place on, and which messages it skips.

It takes part in its queue's rotation like any consumer, and leaves it when it has read everything committed (then it is
idle), when it needs a chunk, or when another obstacle keeps it from taking messages.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pandomq.kernel.constants import NEVER_MS, READ_BURST
from pandomq.kernel.plain.chunk import Chunk
from pandomq.kernel.plain.fields import find_field
from pandomq.kernel.plain.message import Message
from pandomq.kernel.plain.offset_header import with_offset
from pandomq.kernel.plain.ring import RingEntry

if TYPE_CHECKING:
    from pandomq.kernel.plain.consumer import Consumer
    from pandomq.kernel.plain.stream import StreamEnd

BLANK: Final = Message(b"\0\0", b"", b"")
"""Stands for the delivered messages in the windows of channels: a stream keeps its messages, however they are
settled."""
FILTER: Final = b"x-stream-filter-value"


class Reader:
    """The state of a consumer that reads a stream."""

    __slots__ = (
        "_chunk",
        "_consumer",
        "_filters",
        "_is_wanting",
        "_match_unfiltered",
        "_position",
        "_stream",
        "next_offset",
    )

    def __init__(self, consumer: "Consumer", stream: "StreamEnd") -> None:
        self._consumer = consumer
        self._stream = stream
        self._chunk: Chunk | None = None
        self._position = 0
        self._is_wanting = False
        self._filters: frozenset[bytes] = frozenset()
        self._match_unfiltered = False
        self.next_offset = -1

    def seek(self, offset: int, filters: Sequence[bytes], match_unfiltered: bool) -> None:
        if offset < 0:
            raise ValueError(f"offset {offset}")
        # In the form that they have in a header.
        self._filters = frozenset(b"S" + len(one).to_bytes(4, "big") + one for one in filters)
        self._match_unfiltered = match_unfiltered
        self.next_offset = offset
        self._chunk = None
        self._is_wanting = False
        self._consumer.wake()

    def leave(self) -> None:
        self._chunk = None
        self._is_wanting = False

    def read_from(self, chunk: Chunk) -> None:
        if not self._is_wanting:
            return
        self._is_wanting = False
        position = chunk.find_offset(self.next_offset)
        if position < chunk.count:
            self._chunk, self._position = chunk, position
        self._consumer.wake()

    def read(self, now_ms: int) -> None:
        """Delivers some messages, if there is no obstacle."""
        for _ in range(READ_BURST):
            if not self._find_row():
                return
            self._deliver(now_ms)
            if self._consumer.has_obstacle():
                return

    def _find_row(self) -> bool:
        """Whether there is a message to deliver; otherwise the consumer has left its turn."""
        while self._turn_to_row():
            assert self._chunk is not None
            row = self._chunk.row(self._position)
            self.next_offset = row[0]
            if self._passes(row[4]):
                return True
            self._step()
        return False

    def _turn_to_row(self) -> bool:
        stream, consumer = self._stream, self._consumer
        if 0 <= self.next_offset < stream.committed_end and self._turn_to_chunk():
            assert self._chunk is not None
            if self._chunk.row(self._position)[0] < stream.committed_end:
                return True
        consumer.turn.remove(consumer)
        if self.next_offset >= 0 and not self._is_wanting:
            stream.idle.append(consumer)
        return False

    def _turn_to_chunk(self) -> bool:
        """Whether its chunk has a next message. Otherwise there is none yet, or it has requested a chunk."""
        if self._chunk is not None and self._position < self._chunk.count:
            return True
        end = self._stream.chunk
        if self._chunk is end:
            return False
        if end.count and self.next_offset >= end.first_offset:
            self._chunk, self._position = end, end.find_offset(self.next_offset)
            return self._position < end.count
        self._chunk = None
        if not self._is_wanting:
            self._is_wanting = True
            self._consumer.queue.engine.wanted_chunks.append(self._consumer)
        return False

    def _passes(self, header: bytes) -> bool:
        if not self._filters:
            return True
        value = find_field(header, FILTER)
        if value is None or value[:1] != b"S":
            return self._match_unfiltered
        return value in self._filters

    def _step(self) -> None:
        self.next_offset += 1
        self._position += 1

    def _deliver(self, now_ms: int) -> None:
        consumer, queue, channel = self._consumer, self._consumer.queue, self._consumer.channel
        assert self._chunk is not None
        offset, time_us, exchange, key, header, body = self._chunk.row(self._position)
        self._step()
        consumer.served = True
        consumer.delivered += 1
        queue.delivered += 1
        queue.engine.delivered += 1
        tag = channel.next_tag()
        routing = bytes((len(exchange),)) + exchange + bytes((len(key),)) + key
        message = Message(routing, with_offset(header, offset), body)
        if queue.trace is not None:
            queue.trace.read(consumer, offset + 1, routing, len(body), time_us)
        channel.session.write_delivery(channel.number, consumer.deliver_start, tag, False, message)
        if not consumer.no_ack:
            consumer.unacked_count += 1
            channel.credit_used += 1
            channel.keep_unacked(tag, queue, RingEntry(BLANK, offset + 1, 0, NEVER_MS), consumer, now_ms)
