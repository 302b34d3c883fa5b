"""The segment that entries are being added to: their bytes, their table slots, and the sectors of the head.

It encodes entries and returns what to write where; the appender decides when, and tracks who waits for it.
"""

from collections.abc import Sequence

from pandomq.journal.chain import ChainPoints
from pandomq.journal.checksums import CHAIN_BASE, CHAIN_PRIME, IDENTITY
from pandomq.journal.effects import Write
from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.segments.layout import (
    ENTRY_BEGIN,
    ENTRY_END,
    ENTRY_HEAD,
    ENTRY_HEAD_BYTES,
    LAG_MAX,
    MARK,
    MARK_SECTORS,
    OPENING,
    OPENING_SECTOR,
    PADDING,
    SEAL,
    SEAL_SECTOR,
    SECTOR_SUM,
    SLOT_BYTES,
    SLOT_CONTENT,
    TABLE_OFFSET,
    blank_sectors,
    body_offset,
    encode_sector,
)
from pandomq.journal.segments.segment import Segment
from pandomq.kernel import crc32

# Looked up once: these are called for every entry.
pack_identity = IDENTITY.pack
pack_head = ENTRY_HEAD.pack
pack_slot = SLOT_CONTENT.pack
pack_sum = SECTOR_SUM.pack

JOIN_BYTES_MAX = 16 * 1024
"""Chunks with a smaller average are joined: copying them costs less than passing each to the system."""


class OpenSegment:
    __slots__ = (
        "_group_place",
        "_group_position",
        "_limit",
        "_mark_counter",
        "_opening",
        "_position",
        "_seed",
        "_table",
        "_term_count",
        "_term_last",
        "chunks",
        "segment",
    )

    def __init__(self, segment: Segment, seed: int, body_bytes: int, term_before: int) -> None:
        self.segment = segment
        self._seed = seed
        self._limit = body_offset(segment.slot_count) + body_bytes
        self._table = bytearray(segment.slot_count * SLOT_BYTES)
        self._opening: bytes | None = OPENING.pack(segment.first_index, term_before, segment.chain_before)
        self._position = self._group_position = segment.end
        self._group_place = 0
        self.chunks: list[bytes] = []
        """Heads and payloads of the group that is not closed yet, alternating."""
        self._term_last = 0
        self._term_count = 0
        self._mark_counter = 0

    def resume(self, table: bytes, term_last: int, term_count: int, mark_counter: int) -> None:
        """Continues where recovery found the end of an opened segment."""
        self._opening = None
        self._table[: len(table)] = table
        self._group_place = len(self.segment.positions)
        self._term_last = term_last
        self._term_count = term_count
        self._mark_counter = mark_counter

    @property
    def group_count(self) -> int:
        return len(self.segment.positions) - self._group_place

    @property
    def half_full(self) -> bool:
        segment = self.segment
        return self._position * 2 > self._limit or len(segment.positions) * 2 > segment.slot_count

    def pack(
        self, payloads: Sequence[bytes], start: int, index: int, term: int, synced_index: int, points: ChainPoints
    ) -> int:
        """Adds payloads from this position of the sequence on, as long as there is room, as entries from this index on.
        Returns the position of the first that was not added. An empty segment takes at least one, however large."""
        segment = self.segment
        assert segment.checksums is not None
        chunks, position, limit, chain = self.chunks, self._position, self._limit, segment.chain_after
        seed, place, place_end = self._seed, len(segment.positions), segment.slot_count
        place_first = place
        positions: list[int] = []
        checksums: list[int] = []
        slots: list[bytes] = []
        add_chunk, add_slot, add_position, add_checksum = (
            chunks.append,
            slots.append,
            positions.append,
            checksums.append,
        )
        stride_mask = points.stride - 1
        # The recorded lag of the disk; a larger lag is recorded as the maximum.
        lag, lag_step = index - synced_index, 1
        if lag + len(payloads) > LAG_MAX:
            lag, lag_step = LAG_MAX, 0
        for payload in payloads[start:] if start else payloads:
            length = len(payload)
            if place == place_end or (position + ENTRY_HEAD_BYTES + length > limit and place):
                break
            # The same as checksums.entry_checksum and chain_next, written out: this is the loop that has to be fast.
            checksum = crc32(pack_identity(index, term, length), crc32(payload))
            chain = (chain * CHAIN_BASE + checksum + 1) % CHAIN_PRIME
            if not index & stride_mask:
                points.record(index, chain)
                stride_mask = points.stride - 1
            # A sector of zeros anywhere in the payload shows in every 512th byte of it.
            blank = 0
            if length >= SECTOR_BYTES and 0 in payload[::SECTOR_BYTES]:
                blank = blank_sectors(payload, position + ENTRY_HEAD_BYTES)
            content = pack_slot(term, checksum, position, length, blank, lag)
            add_slot(content)
            add_slot(pack_sum(crc32(content, seed ^ place)))
            add_chunk(pack_head(ENTRY_BEGIN, 0, length, index, term, checksum, ENTRY_END))
            add_chunk(payload)
            add_position(position)
            add_checksum(checksum)
            position += ENTRY_HEAD_BYTES + length
            place += 1
            index += 1
            lag += lag_step
        if place > place_first:
            segment.positions.extend(positions)
            segment.checksums.extend(checksums)
            self._table[place_first * SLOT_BYTES : place * SLOT_BYTES] = b"".join(slots)
            if term != self._term_last:
                self._term_last = term
                self._term_count += 1
        self._position = position
        segment.chain_after = chain
        return start + place - place_first

    @property
    def group_bytes(self) -> int:
        return self._position - self._group_position

    def close_group(self) -> tuple[list[Write], list[bytes]]:
        """The writes for the entries since the last call, and the chunks, of which every second one is a payload."""
        segment, chunks = self.segment, self.chunks
        writes: list[Write] = []
        if chunks:
            if self._opening is not None:
                writes.append(self._head_write(OPENING_SECTOR, self._opening))
                self._opening = None
            padding = -self._position % SECTOR_BYTES
            written = [*chunks, PADDING[:padding]]
            if self._position - self._group_position < JOIN_BYTES_MAX * len(chunks):
                written = [b"".join(written)]
            writes.append(Write(segment.file, self._group_position, tuple(written)))
            first, last = self._group_place * SLOT_BYTES, len(segment.positions) * SLOT_BYTES
            writes.append(Write(segment.file, TABLE_OFFSET + first, (bytes(self._table[first:last]),)))
            self._position += padding
        self._group_position = segment.end = self._position
        self._group_place = len(segment.positions)
        self.chunks = []
        return writes, chunks

    def mark(self, synced_index: int) -> Write:
        self._mark_counter += 1
        sector = MARK_SECTORS[self._mark_counter % 2]
        return self._head_write(sector, MARK.pack(self._mark_counter, synced_index))

    def seal(self) -> Write:
        """Seals the segment: nothing is added after this."""
        segment = self.segment
        assert not self.chunks and self._opening is None
        segment.sealed = True
        table_sum = crc32(memoryview(self._table)[: len(segment.positions) * SLOT_BYTES])
        content = SEAL.pack(
            segment.last_index, segment.end, self._term_last, segment.chain_after, table_sum, self._term_count
        )
        return self._head_write(SEAL_SECTOR, content)

    def _head_write(self, sector: int, content: bytes) -> Write:
        return Write(self.segment.file, sector * SECTOR_BYTES, (encode_sector(content, self._seed),))
