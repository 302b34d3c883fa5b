"""The sealed chunks of one stream, oldest first, and their segments.

A segment is a run of neighbouring chunks that together are as large as the stream's segment size; retention drops whole
ones. Which chunk begins a segment depends only on the log, so brokers agree on it.
"""

from bisect import bisect_left
from typing import Any

import msgspec


class SealedChunk(msgspec.Struct, gc=False, eq=False):
    first_offset: int
    last_offset: int
    count: int
    size_bytes: int
    first_time_us: int
    last_time_us: int
    begins_segment: bool
    stored: Any
    """The location of its bytes, which only the cache's store interprets."""


class ChunkIndex:
    __slots__ = ("_segment_bytes", "rows", "segment_count", "size_bytes")

    def __init__(self) -> None:
        self.rows: list[SealedChunk] = []
        self.size_bytes = 0
        self.segment_count = 0
        self._segment_bytes = 0
        """The size of the last segment, so far."""

    def begins_segment(self, segment_bytes: int) -> bool:
        """Whether the next chunk begins one, if segments are to be of this size."""
        return not self.rows or self._segment_bytes >= segment_bytes

    def add(self, row: SealedChunk) -> None:
        assert not self.rows or row.first_offset > self.rows[-1].last_offset, "chunks follow each other"
        if row.begins_segment or not self.rows:
            row.begins_segment = True
            self.segment_count += 1
            self._segment_bytes = 0
        self.rows.append(row)
        self.size_bytes += row.size_bytes
        self._segment_bytes += row.size_bytes

    def find(self, offset: int) -> int:
        """The position of the first chunk that ends at this offset or later; len(rows) if there is none."""
        return bisect_left(self.rows, offset, key=_last_offset)

    def find_time(self, time_us: int) -> int:
        """The position of the first chunk whose last message has this time or a later one; len(rows) if there is
        none."""
        return bisect_left(self.rows, time_us, key=_last_time_us)

    def first_segment(self) -> list[SealedChunk]:
        """The chunks of the first segment; all but the last segment are whole."""
        end = next((at for at in range(1, len(self.rows)) if self.rows[at].begins_segment), len(self.rows))
        return self.rows[:end]

    def drop_first_segment(self) -> list[SealedChunk]:
        dropped = self.first_segment()
        del self.rows[: len(dropped)]
        self.size_bytes -= sum(row.size_bytes for row in dropped)
        self.segment_count -= 1
        return dropped

    def drop_before(self, offset: int) -> list[SealedChunk]:
        """Drops the chunks that end before the offset."""
        dropped = self.rows[: self.find(offset)]
        if dropped:
            del self.rows[: len(dropped)]
            self.size_bytes -= sum(row.size_bytes for row in dropped)
            if self.rows:
                self.rows[0].begins_segment = True
            self.segment_count = sum(row.begins_segment for row in self.rows)
            if self.segment_count == 1:
                # Part of the last segment may have been dropped.
                self._segment_bytes = self.size_bytes
        return dropped

    def clear(self) -> list[SealedChunk]:
        rows, self.rows = self.rows, []
        self.size_bytes = self.segment_count = self._segment_bytes = 0
        return rows


def _last_offset(row: SealedChunk) -> int:
    return row.last_offset


def _last_time_us(row: SealedChunk) -> int:
    return row.last_time_us
