"""Copies the live parts of sparse segments that lie side by side into one compacted segment.

Off the hot path: in the bulk lane, a bounded piece of work at a time. Every entry that something is copied from is
checked whole, so that damage is found here and not copied. The new file is synced and read back, and takes the place of
the old ones only when what their owner considered dead is dead for good.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from zlib import crc32

from pandomq.journal.checksums import IDENTITY
from pandomq.journal.compact_layout import BODY_OFFSET, CompactHead, encode_directory, encode_head
from pandomq.journal.effects import Create, Delete, FileName, Rename, SyncDirectory, SyncFile, Write
from pandomq.journal.events import Flaw, FlawKind
from pandomq.journal.layout import ENTRY_BEGIN, ENTRY_END, ENTRY_HEAD, ENTRY_HEAD_BYTES, Identity
from pandomq.journal.limits import JournalSettings
from pandomq.journal.names import compact_file, unfinished
from pandomq.journal.segment import CompactSegment, Ranges, Segment, Stored
from pandomq.journal.space import Space, is_full
from pandomq.journal.window import Window
from pandomq.journal.work import DiskFailed, Task, Work, pause, perform

LiveRange = tuple[int, int, int]
"""Index of an entry, offset in its payload, length."""

SPAN_BYTES_MAX = 1024 * 1024
"""Live ranges that touch are kept as one, up to this size."""


class SourceBad(Exception):
    def __init__(self, flaw: Flaw) -> None:
        super().__init__(flaw)
        self.flaw = flaw


class Compaction:
    """One run of segments on its way into one file."""

    __slots__ = (
        "_answered",
        "_chunks",
        "_file",
        "_identity",
        "_pending_bytes",
        "_position",
        "_ranges",
        "_settings",
        "_settled",
        "_space",
        "_unsynced_bytes",
        "_wanted",
        "_written",
        "number",
        "safe_index",
        "sources",
        "task",
    )

    def __init__(
        self,
        settings: JournalSettings,
        identity: Identity,
        space: Space,
        settled: Callable[[], int],
        sources: list[Stored],
        number: int,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._space = space
        self._settled = settled
        self.sources = sources
        self.number = number
        self.safe_index = 0
        """The log's end when the last live range was named: what died before it must be settled."""
        self._wanted: list[int] = []
        """Live ranges, each packed into one number: there may be a great many."""
        self._answered = False
        self._file = unfinished(compact_file(number))
        self._ranges = Ranges()
        self._chunks: list[bytes] = []
        self._pending_bytes = self._unsynced_bytes = 0
        self._position = self._written = BODY_OFFSET
        self.task: Task[CompactSegment | Flaw | None] | None = None

    @property
    def first_index(self) -> int:
        return self.sources[0].first_index

    @property
    def last_index(self) -> int:
        return self.sources[-1].last_index

    def answer(self, ranges: Iterable[LiveRange], last_index: int, *, done: bool) -> None:
        self._wanted += [index << 64 | offset << 32 | length for index, offset, length in ranges]
        self.safe_index = last_index
        self._answered = done
        if done:
            self.wake()

    def wake(self) -> None:
        if self.task is not None:
            self.task.wake()

    def work(self) -> Work[CompactSegment | Flaw | None]:
        """Ends with the new segment, with the flaw that was in the way, or with nothing for want of space."""
        while not self._answered:
            yield from pause()
        self._wanted.sort()
        try:
            yield from perform(Create(self._file))
            yield from self._copy()
            compact = yield from self._finish()
            yield from self._check(compact)
            while self._settled() < self.safe_index:
                yield from pause()
            yield from perform(Rename(self._file, compact_file(self.number)), SyncDirectory())
            return compact
        except SourceBad as bad:
            yield from perform(Delete(self._file))
            return bad.flaw
        except DiskFailed as failure:
            if not is_full(failure):
                raise
            yield from self._space.give_up_reserve()
            yield from perform(Delete(self._file))
            return None

    # Copying.

    def _copy(self) -> Work[None]:
        entries = live_spans(self._wanted)
        upcoming = next(entries, None)
        for source in self.sources:
            window = Window(source.file, source.size_bytes, self._settings.bulk_chunk_bytes)
            while upcoming is not None and upcoming[0] <= source.last_index:
                index, spans = upcoming
                if isinstance(source, Segment):
                    pieces = yield from self._from_entry(window, source, index, spans)
                else:
                    assert isinstance(source, CompactSegment)
                    pieces = yield from self._from_ranges(window, source, index, spans)
                for (offset, _), piece in zip(spans, pieces, strict=True):
                    self._add(index, offset, piece)
                yield from self._flush(self._settings.bulk_chunk_bytes)
                upcoming = next(entries, None)
        self._wanted.clear()
        yield from self._flush(1)

    def _from_entry(
        self, window: Window, source: Segment, index: int, spans: list[tuple[int, int]]
    ) -> Work[list[bytes]]:
        position = source.positions[index - source.first_index]
        head = yield from window.look(position, ENTRY_HEAD_BYTES)
        begin, _, length, found, term, checksum, end = ENTRY_HEAD.unpack(head.ljust(ENTRY_HEAD_BYTES, b"\0"))
        if (begin, found, end) != (ENTRY_BEGIN, index, ENTRY_END) or position + length > source.end:
            raise SourceBad(Flaw(FlawKind.BODY, source.file, position, "an entry's head is damaged", index))
        pieces: list[list[bytes]] = [[] for _ in spans]
        total = done = first = 0
        while done < length:
            wanted = min(self._settings.bulk_chunk_bytes, length - done)
            data = yield from window.look(position + ENTRY_HEAD_BYTES + done, wanted)
            if not data:
                break
            total = crc32(data, total)
            for place in range(first, len(spans)):
                offset, size = spans[place]
                if offset >= done + len(data):
                    break
                pieces[place].append(data[max(offset - done, 0) : max(offset + size - done, 0)])
                if offset + size <= done + len(data):
                    first = place + 1
            done += len(data)
        if done < length or crc32(IDENTITY.pack(index, term, length), total) != checksum:
            raise SourceBad(Flaw(FlawKind.BODY, source.file, position, "an entry is damaged", index))
        return [b"".join(parts) for parts in pieces]

    def _from_ranges(
        self, window: Window, source: CompactSegment, index: int, spans: list[tuple[int, int]]
    ) -> Work[list[bytes]]:
        pieces: list[bytes] = []
        ranges = source.ranges
        for offset, length in spans:
            place = ranges.find(index, offset, length)
            assert place is not None, "what is live was copied before"
            position = ranges.positions[place]
            data = yield from window.look(position, ranges.lengths[place])
            if crc32(data) != ranges.checksums[place]:
                raise SourceBad(Flaw(FlawKind.COMPACT, source.file, position, "a live range is damaged", index))
            start = offset - ranges.offsets[place]
            pieces.append(data[start : start + length])
        return pieces

    def _add(self, index: int, offset: int, piece: bytes) -> None:
        self._ranges.add(index, offset, len(piece), self._position, crc32(piece))
        self._chunks.append(piece)
        self._position += len(piece)
        self._pending_bytes += len(piece)

    def _flush(self, bytes_min: int) -> Work[None]:
        if self._pending_bytes < bytes_min:
            return
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._pending_bytes = 0
        yield from perform(Write(self._file, self._written, (data,)))
        self._written += len(data)
        self._unsynced_bytes += len(data)
        if self._unsynced_bytes >= self._settings.bulk_sync_bytes:
            self._unsynced_bytes = 0
            yield from perform(SyncFile(self._file))

    # The end of the file, and its beginning.

    def _finish(self) -> Work[CompactSegment]:
        directory = encode_directory(self._ranges)
        chains = (self.sources[0].chain_before, self.sources[-1].chain_after)
        head = CompactHead(
            self.number,
            self.first_index,
            self.last_index,
            *chains,
            len(self._ranges),
            self._position,
            crc32(directory),
        )
        sector = encode_head(self._identity, head)
        yield from perform(
            Write(self._file, self._position, (directory, directory, sector)),
            Write(self._file, 0, (sector,)),
            SyncFile(self._file),
        )
        size_bytes = self._position + 2 * len(directory) + len(sector)
        file = FileName(compact_file(self.number))
        return CompactSegment(self.number, file, (self.first_index, self.last_index), chains, self._ranges, size_bytes)

    def _check(self, compact: CompactSegment) -> Work[None]:
        window = Window(self._file, compact.size_bytes, self._settings.bulk_chunk_bytes)
        yield from check_ranges(window, self._file, compact.ranges)
        directory = encode_directory(compact.ranges)
        data = yield from window.look(self._position, 2 * len(directory))
        if data != directory * 2:
            raise SourceBad(Flaw(FlawKind.COMPACT, self._file, self._position, "read back, the directory is damaged"))


def live_spans(packed: Iterable[int]) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """Sorted live ranges by entry: its index, and (offset, length) of what is live of it, joined where it touches."""
    current = 0
    spans: list[tuple[int, int]] = []
    for number in packed:
        index, offset, length = number >> 64, number >> 32 & 0xFFFFFFFF, number & 0xFFFFFFFF
        if index != current:
            if spans:
                yield current, spans
            current, spans = index, []
        if spans and sum(spans[-1]) == offset and spans[-1][1] + length <= SPAN_BYTES_MAX:
            spans[-1] = (spans[-1][0], spans[-1][1] + length)
        else:
            spans.append((offset, length))
    if spans:
        yield current, spans


def check_ranges(window: Window, file: FileName, ranges: Ranges) -> Work[None]:
    """Raises SourceBad for the first range that is damaged."""
    for position, length, checksum, index in zip(
        ranges.positions, ranges.lengths, ranges.checksums, ranges.indexes, strict=True
    ):
        data = yield from window.look(position, length)
        if len(data) != length or crc32(data) != checksum:
            raise SourceBad(Flaw(FlawKind.COMPACT, file, position, "a live range is damaged", index))
