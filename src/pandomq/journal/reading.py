"""Reads entries, for those who catch up, and byte ranges of them, for queues whose messages are not in memory.

Whatever the disk may not have yet is answered from memory, so that a read never has to wait for a write. Ranges that
lie close together are read in one go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pandomq.ids import LogIndex, Term
from pandomq.journal.appender import Appender
from pandomq.journal.checksums import entry_checksum
from pandomq.journal.effects import DiskError, Lane, Read, Result, Ticket
from pandomq.journal.events import EntriesRead, Entry, Event, Flaw, FlawKind, RangesRead
from pandomq.journal.layout import ENTRY_BEGIN, ENTRY_END, ENTRY_HEAD, ENTRY_HEAD_BYTES
from pandomq.journal.limits import READ_BYTES_MAX, READ_GAP_BYTES, READ_RANGES_MAX
from pandomq.journal.outbox import Outbox
from pandomq.journal.segment import Catalogue, Segment, Stored

Range = tuple[int, int, int]
"""Index of an entry, offset in its payload, length."""

Span = tuple[int, int, int]
"""Position in a file, length, place among the ranges that were asked for."""


class Reading:
    __slots__ = ("_appender", "_catalogue", "_emit", "_free", "_outbox")

    def __init__(
        self,
        outbox: Outbox,
        catalogue: Catalogue,
        appender: Appender,
        emit: Callable[[Event], None],
        free: Callable[[Stored], None],
    ) -> None:
        self._outbox = outbox
        self._catalogue = catalogue
        self._appender = appender
        self._emit = emit
        self._free = free

    # Entries.

    def entries(self, first_index: int, bytes_max: int) -> Ticket:
        ticket = self._outbox.next_ticket()
        stored = self._catalogue.find(first_index)
        if not isinstance(stored, Segment):
            raise LookupError(f"entry {first_index} is not held whole")
        if first_index > self._appender.durable_index:
            self._emit(EntriesRead(ticket, self._from_memory(first_index, bytes_max)))
            return ticket
        last_index = min(stored.last_index, self._appender.durable_index)
        start, end = stored.entry_span(first_index)
        for index in range(first_index + 1, last_index + 1):
            following = stored.entry_span(index)[1]
            if following - start > min(bytes_max, READ_BYTES_MAX):
                last_index = index - 1
                break
            end = following
        self._read_entries(ticket, stored, first_index, last_index, start, end)
        return ticket

    def _from_memory(self, first_index: int, bytes_max: int) -> list[Entry]:
        entries: list[Entry] = []
        size_bytes = 0
        for entry in self._appender.unwritten(first_index):
            size_bytes += len(entry.payload)
            if entries and size_bytes > bytes_max:
                break
            entries.append(entry)
        return entries

    def _read_entries(self, ticket: Ticket, segment: Segment, first: int, last: int, start: int, end: int) -> None:
        positions = segment.positions[first - segment.first_index : last - segment.first_index + 1]

        def done(result: Result) -> None:
            assert isinstance(result, bytes)
            entries: list[Entry] = []
            flaw: Flaw | None = None
            for index, position in enumerate(positions, first):
                entry = parse_entry(result, position - start, index)
                if entry is None:
                    flaw = Flaw(FlawKind.BODY, segment.file, position, "an entry is damaged", index)
                    break
                entries.append(entry)
            self._let_go(segment)
            self._emit(EntriesRead(ticket, entries, flaw))

        def failed(error: DiskError) -> None:
            self._let_go(segment)
            self._emit(EntriesRead(ticket, [], Flaw(FlawKind.BODY, segment.file, start, error.text, first)))

        segment.readers += 1
        self._outbox.put(Lane.READ, Read(segment.file, start, end - start), done, failed)

    # Ranges.

    def ranges(self, wanted: Sequence[Range]) -> Ticket:
        """Answered as one, in the order in which they were asked for."""
        assert len(wanted) <= READ_RANGES_MAX
        ticket = self._outbox.next_ticket()
        pieces: list[bytes | None] = [None] * len(wanted)
        places: dict[Stored, list[Span]] = {}
        durable_index = self._appender.durable_index
        unwritten: dict[int, bytes] = {}
        whole, whole_index, whole_start = None, 0, 0
        for place, (index, offset, length) in enumerate(wanted):
            if not length:
                pieces[place] = b""
            elif index == whole_index and whole is not None:
                # Messages that were published together are wanted together.
                whole.append((whole_start + offset, length, place))
            elif index > durable_index:
                if not unwritten:
                    first = min(index for index, _, _ in wanted if index > durable_index)
                    unwritten = {entry.index: entry.payload for entry in self._appender.unwritten(first)}
                pieces[place] = unwritten[index][offset : offset + length]
            else:
                stored = self._catalogue.find(index)
                position = None if stored is None else stored.locate(index, offset, length)
                if stored is None or position is None:
                    continue
                spans = places.setdefault(stored, [])
                spans.append((position, length, place))
                if isinstance(stored, Segment):
                    whole, whole_index, whole_start = spans, index, position - offset
        runs = [(stored, run) for stored, spans in places.items() for run in runs_of(spans)]
        if not runs:
            self._emit(RangesRead(ticket, pieces))
        left = [len(runs)]

        def arrived() -> None:
            left[0] -= 1
            if not left[0]:
                self._emit(RangesRead(ticket, pieces))

        for stored, run in runs:
            self._read_run(stored, run, pieces, arrived)
        return ticket

    def _read_run(
        self, stored: Stored, run: list[Span], pieces: list[bytes | None], arrived: Callable[[], None]
    ) -> None:
        start = run[0][0]
        end = max(position + length for position, length, _ in run)

        def done(result: Result) -> None:
            assert isinstance(result, bytes)
            for position, length, place in run:
                piece = result[position - start : position - start + length]
                pieces[place] = piece if len(piece) == length else None
            self._let_go(stored)
            arrived()

        def failed(_error: DiskError) -> None:
            # The pieces stay None: an unreadable sector harms the messages in it, and nothing else.
            self._let_go(stored)
            arrived()

        stored.readers += 1
        self._outbox.put(Lane.READ, Read(stored.file, start, end - start), done, failed)

    def _let_go(self, stored: Stored) -> None:
        stored.readers -= 1
        if not stored.readers:
            self._free(stored)


def runs_of(spans: list[Span]) -> list[list[Span]]:
    """Sorted, and joined where little lies between them."""
    spans.sort()
    runs: list[list[Span]] = []
    start = end = 0
    for span in spans:
        position, length, _ = span
        if runs and position - end <= READ_GAP_BYTES and position + length - start <= READ_BYTES_MAX:
            runs[-1].append(span)
        else:
            runs.append([span])
            start = position
        end = max(end, position + length)
    return runs


def parse_entry(data: bytes, at: int, index: int) -> Entry | None:
    """The entry with this index at this place, if it is whole and right."""
    if at + ENTRY_HEAD_BYTES > len(data):
        return None
    begin, zero, length, found, term, checksum, end = ENTRY_HEAD.unpack_from(data, at)
    if (begin, zero, found, end) != (ENTRY_BEGIN, 0, index, ENTRY_END):
        return None
    payload = data[at + ENTRY_HEAD_BYTES : at + ENTRY_HEAD_BYTES + length]
    if len(payload) != length or entry_checksum(index, term, payload) != checksum:
        return None
    return Entry(LogIndex(index), Term(term), payload)
