"""Reads entries, for brokers that catch up.

Entries that may not be on disk yet are returned from memory, so that a read never waits for a write.
"""

from __future__ import annotations

from collections.abc import Callable

from pandomq.ids import LogIndex, Term
from pandomq.journal.checksums import entry_checksum
from pandomq.journal.effects import DiskError, Lane, Read, Result, Ticket
from pandomq.journal.events import EntriesRead, Entry, Event, Flaw, FlawKind
from pandomq.journal.limits import READ_BYTES_MAX
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.segments.appender import Appender
from pandomq.journal.segments.layout import ENTRY_BEGIN, ENTRY_END, ENTRY_HEAD, ENTRY_HEAD_BYTES
from pandomq.journal.segments.segment import Segment, SegmentList


class SegmentReader:
    __slots__ = ("_appender", "_catalogue", "_emit", "_free", "_outbox")

    def __init__(
        self,
        outbox: DiskRequests,
        catalogue: SegmentList,
        appender: Appender,
        emit: Callable[[Event], None],
        free: Callable[[Segment], None],
    ) -> None:
        self._outbox = outbox
        self._catalogue = catalogue
        self._appender = appender
        self._emit = emit
        self._free = free

    def entries(self, first_index: int, bytes_max: int) -> Ticket:
        ticket = self._outbox.next_ticket()
        stored = self._catalogue.find(first_index)
        if stored is None:
            raise LookupError(f"the log does not contain entry {first_index}")
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

    def _let_go(self, segment: Segment) -> None:
        segment.readers -= 1
        if not segment.readers:
            self._free(segment)


def parse_entry(data: bytes, at: int, index: int) -> Entry | None:
    """The entry with this index at this place, if it is complete and its checksum is right."""
    if at + ENTRY_HEAD_BYTES > len(data):
        return None
    begin, zero, length, found, term, checksum, end = ENTRY_HEAD.unpack_from(data, at)
    if (begin, zero, found, end) != (ENTRY_BEGIN, 0, index, ENTRY_END):
        return None
    payload = data[at + ENTRY_HEAD_BYTES : at + ENTRY_HEAD_BYTES + length]
    if len(payload) != length or entry_checksum(index, term, payload) != checksum:
        return None
    return Entry(LogIndex(index), Term(term), payload)
