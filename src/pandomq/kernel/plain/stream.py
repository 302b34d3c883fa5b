"""The end of a stream: the chunk that grows, how much of it is committed, and which readers wait for more.

The end of a chunk depends only on the log, so that all brokers have the same chunks. Rows are appended at once; they
are invisible until the entry that holds them is committed.
"""

from typing import TYPE_CHECKING

from pandomq.kernel.constants import CHUNK_AGE_MS, CHUNK_BYTES, CHUNK_MESSAGES_MAX
from pandomq.kernel.plain.chain import Chain
from pandomq.kernel.plain.chunk import Chunk, reopened
from pandomq.kernel.plain.message import Message

if TYPE_CHECKING:
    from pandomq.kernel.plain.queue_stream import QueueStream


class StreamEnd:
    """The part of a queue that is a stream."""

    __slots__ = ("_queue", "chunk", "chunk_age_ms", "chunk_bytes", "committed_end", "idle", "is_unsealed")

    def __init__(self, queue: "QueueStream") -> None:
        self._queue = queue
        self.chunk = Chunk()
        self.chunk_bytes = CHUNK_BYTES
        self.chunk_age_ms = CHUNK_AGE_MS
        self.committed_end = 0
        self.idle = Chain()  # readers that have read everything committed
        self.is_unsealed = False  # messages came in this batch

    # --- in

    def insert(self, message: Message, now_ms: int) -> None:
        """Takes the message under the queue's next sequence."""
        queue = self._queue
        queue.published += 1
        if queue.trace is not None:
            queue.trace.published(queue, message, queue.next_sequence)
        self._append(message, queue.next_sequence, now_ms)
        if not self.is_unsealed:
            self.is_unsealed = True
            queue.engine.unsealed_streams.append(queue)

    def restore(self, message: Message, sequence: int, now_ms: int) -> None:
        """Takes the message at its old place, unless it is there already."""
        if sequence >= self._queue.next_sequence:
            self._append(message, sequence, now_ms)
            self.commit(sequence)

    def _append(self, message: Message, sequence: int, now_ms: int) -> None:
        time_us = max(now_ms * 1000, self.chunk.last_time_us)
        if self._is_full(time_us):
            self._queue.engine.full_chunks.append((self._queue, self.chunk))
            self.chunk = Chunk()
        self.chunk.add(sequence - 1, time_us, message)
        self._queue.next_sequence = sequence + 1

    def _is_full(self, time_us: int) -> bool:
        chunk = self.chunk
        return chunk.count > 0 and (
            chunk.content_bytes >= self.chunk_bytes
            or chunk.count >= CHUNK_MESSAGES_MAX
            or time_us - chunk.first_time_us >= self.chunk_age_ms * 1000
        )

    def reinstate(self, next_sequence: int, open_rows: bytes) -> None:
        chunk = reopened(open_rows) if open_rows else Chunk()
        if next_sequence < 1 or (chunk.count and chunk.last_offset + 2 > next_sequence):
            raise ValueError(f"the open chunk ends after {next_sequence}")
        self.chunk = chunk
        self._queue.next_sequence = next_sequence
        self.committed_end = 0
        self.commit(next_sequence - 1)

    # --- out

    def commit(self, end: int) -> None:
        """Messages before this offset may be read."""
        self.committed_end = max(self.committed_end, end)
        while (consumer := self.idle.first) is not None:
            consumer.wake()

    def run(self, now_ms: int) -> None:
        """Delivers to readers what they may get, a few messages each in turn."""
        while (consumer := self._queue.rotation.next()) is not None:
            assert consumer.reader is not None
            consumer.reader.read(now_ms)

    def delete(self) -> None:
        self.chunk = Chunk()

    def check(self) -> None:
        self.idle.check()
        assert self.committed_end < self._queue.next_sequence
        assert not self.chunk.count or self.chunk.last_offset + 1 < self._queue.next_sequence
        assert not self.is_unsealed or self._queue in self._queue.engine.unsealed_streams
        assert all(consumer.next_offset >= 0 for consumer in self.idle)
