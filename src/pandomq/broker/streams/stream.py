"""One stream, beside its kernel queue: its chunks, its retention, and offsets stored by name.

The same on every broker that has applied the same entries. Readers may read up to `committed_end`: the root may have
more.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from pandomq import kernel
from pandomq.broker.streams.chunk_index import ChunkIndex, SealedChunk
from pandomq.broker.streams.retention import is_awaited, is_too_much
from pandomq.broker.streams.stored_offsets import OffsetCounts, StoredOffsets
from pandomq.limits import STREAM_AHEAD_BYTES_MAX

if TYPE_CHECKING:
    from pandomq.broker.queues.queue_settings import QueueSettings
    from pandomq.broker.streams.chunk_cache import ChunkCache, OnBytes


class ChunkSummary(msgspec.Struct, frozen=True, gc=False):
    """The readable properties of a chunk."""

    first_offset: int
    last_offset: int
    count: int
    size_bytes: int
    first_time_us: int
    last_time_us: int


class Stream:
    __slots__ = ("_chunk_cache", "held_back", "index", "name", "offsets", "queue", "warned_of")

    def __init__(
        self, name: str, queue: kernel.Queue, chunk_cache: "ChunkCache", offsets: OffsetCounts, offsets_max: int
    ) -> None:
        self.name = name
        self.queue = queue
        self.index = ChunkIndex()
        self.offsets = StoredOffsets(offsets, offsets_max)
        self.held_back = False
        """Whether segments that retention would remove wait for an archive."""
        self.warned_of = False
        """A warning was given that it keeps much for that."""
        self._chunk_cache = chunk_cache

    # State.

    @property
    def open_chunk(self) -> kernel.Chunk:
        """The chunk that grows."""
        chunk = self.queue.open_chunk
        assert chunk is not None, "a stream has one, always"
        return chunk

    @property
    def committed_end(self) -> int:
        """The offset after the last message that readers may get."""
        return self.queue.committed_end

    @property
    def first_offset(self) -> int:
        """The offset of the oldest message that is left; `committed_end` if there is none."""
        first = self._first_chunk
        return self.committed_end if first is None else min(first.first_offset, self.committed_end)

    @property
    def oldest_offset(self) -> int:
        """The offset of the oldest message that is left, committed or not: the same on every broker that has applied
        the same entries."""
        first = self._first_chunk
        return self.queue.next_sequence - 1 if first is None else first.first_offset

    @property
    def first_time_us(self) -> int:
        """0 if there is no message."""
        first = self._first_chunk
        return 0 if first is None or self.is_empty else first.first_time_us

    @property
    def last_time_us(self) -> int:
        """0 if there is no message."""
        row = self._last_row()
        return 0 if row is None else row.last_time_us

    @property
    def is_empty(self) -> bool:
        return self.first_offset == self.committed_end

    @property
    def message_count(self) -> int:
        return self.committed_end - self.first_offset

    @property
    def size_bytes(self) -> int:
        return self.index.size_bytes + (self.open_chunk.size_bytes if self.open_chunk.count else 0)

    @property
    def segment_count(self) -> int:
        """The open chunk belongs to the last one, or is the first."""
        return self.index.segment_count or int(not self.is_empty)

    @property
    def stored_offsets(self) -> dict[str, int]:
        """The stored offsets by name; a copy."""
        return self.offsets.copy()

    def chunks(self, first_offset: int, end_offset: int, rows_max: int) -> list[ChunkSummary]:
        """The chunks with messages from the first offset on and before the end, in order; the open one comes last."""
        end_offset = min(end_offset, self.committed_end)
        sealed = self.index.rows
        found: list[ChunkSummary] = []
        for at in range(self.index.find(first_offset), len(sealed)):
            if len(found) == rows_max or sealed[at].first_offset >= end_offset:
                return found
            found.append(self._readable(sealed[at]))
        open_row = self._open_row()
        wanted = open_row is not None and open_row.first_offset < end_offset and open_row.last_offset >= first_offset
        if open_row is not None and wanted and len(found) < rows_max:
            found.append(open_row)
        return found

    # Reading.

    def read(self, first_offset: int, on_bytes: "OnBytes") -> None:
        """The bytes of the chunk that has this offset, as far as it is committed; None if there is no such chunk, or no
        longer. At once, or later."""
        position = self.index.find(first_offset)
        if first_offset >= self.committed_end:
            on_bytes(None)
        elif position == len(self.index.rows):
            self._read_open(first_offset, on_bytes)
        elif (row := self.index.rows[position]).first_offset > first_offset:
            on_bytes(None)
        elif row.last_offset < self.committed_end:
            self._chunk_cache.fetch(row, on_bytes)
        else:
            count = self.committed_end - row.first_offset
            self._chunk_cache.open(row, lambda chunk: on_bytes(None if chunk is None else chunk.seal_rows(count)))

    def stored(self, first_offset: int) -> Any:
        """The store's name for the chunk that has this offset, if it is sealed and all of it is committed; else
        None."""
        position = self.index.find(first_offset)
        row = self.index.rows[position] if position < len(self.index.rows) else None
        if row is None or row.first_offset > first_offset or row.last_offset >= self.committed_end:
            return None
        return row.stored

    def _read_open(self, offset: int, on_bytes: "OnBytes") -> None:
        chunk = self.open_chunk
        count = self._committed_count(chunk)
        on_bytes(chunk.seal_rows(count) if count and chunk.first_offset <= offset else None)

    def find_time(self, time_us: int, on_offset: Callable[[int], None], full: "Sequence[kernel.Chunk]" = ()) -> None:
        """The offset of the first message of this time or later; `committed_end` if there is none. The chunks in `full`
        have become so, and are not sealed yet."""
        position = self.index.find_time(time_us)
        if position == len(self.index.rows):
            chunk = next((chunk for chunk in full if chunk.last_time_us >= time_us), self.open_chunk)
            on_offset(self._offset_in(chunk, time_us) if chunk.count else self.committed_end)
        elif (row := self.index.rows[position]).first_time_us >= time_us:
            on_offset(min(row.first_offset, self.committed_end))
        else:
            # If it was deleted by then, the rest is later.
            self._chunk_cache.open(
                row,
                lambda chunk: on_offset(self.first_offset if chunk is None else self._offset_in(chunk, time_us)),
            )

    def open_at(self, offset: int, on_chunk: Callable[[kernel.Chunk], None]) -> None:
        """The chunk with the first message of this offset or later; the open one if no other has it."""
        position = self.index.find(offset)
        if position == len(self.index.rows):
            on_chunk(self.open_chunk)
            return
        row, *following = self.index.rows[position : position + 2]

        def came(chunk: kernel.Chunk | None) -> None:
            if chunk is None:
                self.open_at(offset, on_chunk)
            else:
                on_chunk(chunk)

        self._chunk_cache.open(row, came)
        for one in following:
            # A reader of a chunk will soon need the next one.
            if row.size_bytes + one.size_bytes <= STREAM_AHEAD_BYTES_MAX:
                self._chunk_cache.open(one, lambda chunk: None)

    # Changes.

    def sealed(self, chunk: kernel.Chunk, settings: "QueueSettings", now_us: int) -> int:
        """The kernel has begun another chunk. Segments that are too many, or too old, are dropped; as in `retain`."""
        self.index.add(
            SealedChunk(
                chunk.first_offset,
                chunk.last_offset,
                chunk.count,
                chunk.size_bytes,
                chunk.first_time_us,
                chunk.last_time_us,
                self.index.begins_segment(settings.segment_bytes),
                self._chunk_cache.put(chunk, settings.compression),
            )
        )
        return self.retain(settings, now_us)

    def retain(self, settings: "QueueSettings", now_us: int) -> int:
        """Returns how many messages it has dropped that were not archived, though they should have been."""
        index, lost = self.index, 0
        archived_end = None if settings.archive is None else self.offsets.get(settings.archive)
        self.held_back = False
        while is_too_much(index, settings, now_us):
            awaited = is_awaited(index.first_segment(), settings, archived_end)
            if awaited and index.size_bytes <= settings.unarchived_bytes_max:
                self.held_back = True
                break
            dropped = index.drop_first_segment()
            for row in dropped:
                self._chunk_cache.free(row)
            if awaited:
                lost += dropped[-1].last_offset + 1 - max(dropped[0].first_offset, archived_end or 0)
        return lost

    def begin_at(self, offset: int) -> None:
        """Its first message will have this offset. To be called while it has had none, on every broker."""
        assert not self.index.rows and not self.open_chunk.count
        self.queue.reinstate_stream(offset + 1, b"")

    def drop_before(self, offset: int) -> None:
        """Drops the chunks that end before this offset, whatever segment they belong to. To be called on every
        broker."""
        for row in self.index.drop_before(offset):
            self._chunk_cache.free(row)

    def close(self) -> None:
        """The stream was deleted."""
        for row in self.index.clear():
            self._chunk_cache.free(row)
        self.offsets.close()

    # Rows.

    @property
    def _first_chunk(self) -> "SealedChunk | kernel.Chunk | None":
        if self.index.rows:
            return self.index.rows[0]
        return self.open_chunk if self.open_chunk.count else None

    def _committed_count(self, chunk: kernel.Chunk) -> int:
        return max(0, min(chunk.count, self.committed_end - chunk.first_offset)) if chunk.count else 0

    def _readable(self, row: SealedChunk) -> ChunkSummary:
        """The row without messages that are not committed; sizes and times are those of the whole."""
        last_offset = min(row.last_offset, self.committed_end - 1)
        count = row.count - (row.last_offset - last_offset)
        return ChunkSummary(row.first_offset, last_offset, count, row.size_bytes, row.first_time_us, row.last_time_us)

    def _open_row(self) -> ChunkSummary | None:
        chunk = self.open_chunk
        count = self._committed_count(chunk)
        if not count:
            return None
        last_offset = chunk.first_offset + count - 1
        return ChunkSummary(
            chunk.first_offset, last_offset, count, chunk.size_bytes, chunk.first_time_us, chunk.last_time_us
        )

    def _last_row(self) -> ChunkSummary | None:
        rows = self.chunks(self.committed_end - 1, self.committed_end, 1)
        return rows[0] if rows else None

    def _offset_in(self, chunk: kernel.Chunk, time_us: int) -> int:
        return min(chunk.first_offset + chunk.find_time(time_us), self.committed_end)
