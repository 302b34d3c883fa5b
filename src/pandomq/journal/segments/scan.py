"""Reads one segment, entry by entry, and finds out where it ends and why.

Every entry has two records: its body, and its slot in the table; they were written under one sync. If both agree the
entry is good. If they differ, the result depends on whether the log is proven to have been synced up to there:

    proven      a bad body is corruption. A bad slot with a good body is a flaw that can be mended.
    not proven  no slot and no body: the end. No slot, but a good body: it survived, and stays.
                A good slot, and a body with sectors that are zeros although they were not: torn.
                Anything else cannot come from a write that was cut short: corruption.

Entries up to the snapshot are not needed to restore the state; damage there may cost messages, but not the log.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from pandomq.ids import LogIndex, Term
from pandomq.journal.checksums import IDENTITY
from pandomq.journal.events import Entry, Flaw, FlawKind
from pandomq.journal.limits import ENTRY_BYTES_MAX, SECTOR_BYTES
from pandomq.journal.segments.layout import (
    ENTRY_BEGIN,
    ENTRY_END,
    ENTRY_HEAD,
    ENTRY_HEAD_BYTES,
    LAG_MAX,
    SLOT_BYTES,
    Slot,
    align,
    blank_sectors,
    encode_slot,
)
from pandomq.journal.segments.reading import parse_entry
from pandomq.journal.segments.segment import Segment
from pandomq.journal.segments.table import BAD, GOOD, NEVER, SlotTable
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.terms import Terms
from pandomq.journal.work import Work
from pandomq.kernel import crc32

LOOK_BYTES = 1024 * 1024


class Ending(enum.Enum):
    CLEAN = "clean"
    TORN = "torn"
    DAMAGED = "damaged"


class SegmentScan:
    __slots__ = (
        "_entries",
        "_limit_index",
        "_proven_index",
        "_seed",
        "_segment",
        "_snapshot_index",
        "_table",
        "_take",
        "_term",
        "_terms",
        "_window",
        "ending",
        "flaws",
        "mended",
        "position",
        "text",
    )

    def __init__(
        self,
        segment: Segment,
        table: SlotTable,
        seed: int,
        window: ReadWindow,
        *,
        proven_index: int,
        snapshot_index: int,
        limit_index: int,
        terms: Terms,
        take: Callable[[list[Entry]], None],
    ) -> None:
        self._segment = segment
        self._table = table
        self._seed = seed
        self._window = window
        self._proven_index = proven_index
        self._snapshot_index = snapshot_index
        self._limit_index = limit_index
        """Entries from here on are not needed."""
        self._take = take
        self._entries: list[Entry] = []
        self.position = segment.end
        """The end of the last good entry."""
        self._terms = terms
        self._term = terms.last
        self.ending = Ending.CLEAN
        self.text = ""
        self.mended: dict[int, bytes] = {}
        """Slots to be written again."""
        self.flaws: list[Flaw] = []

    @property
    def index(self) -> int:
        """The index of the next entry."""
        return self._segment.first_index + len(self._segment.positions)

    def run(self) -> Work[None]:
        going = True
        while going:
            self._take_agreeing()
            self._hand_over()
            slot = self._agreed_slot()
            if slot is not None and not self._window.covers(slot.position, ENTRY_HEAD_BYTES + slot.length):
                end = slot.position + ENTRY_HEAD_BYTES + slot.length
                if end <= self._window.size_bytes:
                    yield from self._window.move(slot.position, ENTRY_HEAD_BYTES + slot.length)
                    if self._window.covers(slot.position, ENTRY_HEAD_BYTES + slot.length):
                        continue
            going = yield from self._look_closer()
        self._hand_over()
        self._segment.end = align(self.position)

    def _agreed_slot(self) -> Slot | None:
        place = len(self._segment.positions)
        if self.index < self._limit_index and self._table.state(place) == GOOD:
            return self._table.slot(place)
        return None

    def _hand_over(self) -> None:
        if self._entries:
            entries, self._entries = self._entries, []
            self._take(entries)

    def _take_agreeing(self) -> None:
        """Takes the entries whose slot and body agree, as far as the window shows them."""
        segment, table = self._segment, self._table
        positions, checksums, rows, states = segment.positions, segment.checksums, table.rows, table.states
        assert checksums is not None
        data, start, term_last = self._window.data, self._window.start, self._term
        index, snapshot_index = self.index, self._snapshot_index
        entries, window_bytes = self._entries, len(data)
        place_first = len(positions)
        place_end = max(place_first, min(len(rows), self._limit_index - segment.first_index))
        bad = states.find(BAD, place_first, place_end)
        never = states.find(NEVER, place_first, place_end)
        place_end = min(place for place in (place_end, bad, never) if place >= 0)
        for term, checksum, position, length, _, _, _ in rows[place_first:place_end]:
            at = position - start
            end = at + ENTRY_HEAD_BYTES + length
            if at < 0 or end > window_bytes:
                break
            payload = data[at + ENTRY_HEAD_BYTES : end]
            head = ENTRY_HEAD.pack(ENTRY_BEGIN, 0, length, index, term, checksum, ENTRY_END)
            if (
                data[at : at + ENTRY_HEAD_BYTES] != head
                or crc32(IDENTITY.pack(index, term, length), crc32(payload)) != checksum
            ):
                break
            if term != term_last:
                if term < term_last:
                    break
                self._terms.note(index, term)
                term_last = term
            positions.append(position)
            checksums.append(checksum)
            if index > snapshot_index:
                entries.append(Entry(LogIndex(index), Term(term), payload))
            index += 1
        if len(positions) > place_first:
            self.position = positions[-1] + ENTRY_HEAD_BYTES + rows[len(positions) - 1][3]
            self._term = term_last

    # Where the two records differ.

    def _look_closer(self) -> Work[bool]:
        """Returns whether the log goes on behind the next entry."""
        place, index = len(self._segment.positions), self.index
        if index >= self._limit_index or place == self._segment.slot_count:
            return False
        state = self._table.state(place)
        slot = self._table.slot(place) if state == GOOD else None
        position, entry = yield from self._find_body(index, slot)
        if entry is not None and slot is None:
            self._mend(place, position, entry, state)
            return True
        if index <= self._snapshot_index:
            return self._pass_over(place, position, slot)
        if entry is not None:
            return self._end(Ending.DAMAGED, position, f"entry {index} and its table slot contradict each other")
        if index <= self._proven_index:
            return self._end(
                Ending.DAMAGED, position, f"entry {index} was synced, but does not have its original content"
            )
        if slot is None:
            if state == BAD:
                return self._end(Ending.DAMAGED, position, f"entry {index} and its table slot are both damaged")
            left = len(self._table) > place or self._window.size_bytes > align(self.position)
            return self._end(
                Ending.TORN if left else Ending.CLEAN, self.position, f"the write of entry {index} was not finished"
            )
        if (yield from self._blank_sectors(slot)) > slot.blank:
            return self._end(Ending.TORN, position, f"the write of entry {index} was not finished")
        return self._end(Ending.DAMAGED, position, f"entry {index} is complete, but does not have its original content")

    def _end(self, ending: Ending, position: int, text: str) -> bool:
        self.ending = ending
        self.text = text
        if ending is Ending.DAMAGED:
            self.position = position
        return False

    def _find_body(self, index: int, slot: Slot | None) -> Work[tuple[int, Entry | None]]:
        # Without a slot: behind the entry before, or where the next group would begin.
        places = [slot.position] if slot is not None else sorted({self.position, align(self.position)})
        for position in places:
            head = yield from self._window.look(position, ENTRY_HEAD_BYTES)
            if len(head) < ENTRY_HEAD_BYTES:
                continue
            length = ENTRY_HEAD.unpack(head)[2]
            if length <= ENTRY_BYTES_MAX and position + ENTRY_HEAD_BYTES + length <= self._window.size_bytes:
                data = yield from self._window.look(position, ENTRY_HEAD_BYTES + length)
                entry = parse_entry(data, 0, index)
                if entry is not None and entry.term >= self._term:
                    return position, entry
        return places[-1], None

    def _mend(self, place: int, position: int, entry: Entry, state: int) -> None:
        segment = self._segment
        assert segment.checksums is not None
        checksum = crc32(IDENTITY.pack(entry.index, entry.term, len(entry.payload)), crc32(entry.payload))
        blank = blank_sectors(entry.payload, position + ENTRY_HEAD_BYTES)
        # It claims no more than is proven: the body may come from the system's memory and not be on disk.
        lag = min(max(entry.index - self._proven_index, 0), LAG_MAX)
        slot = Slot(entry.term, checksum, position, len(entry.payload), blank, lag)
        self.mended[place] = encode_slot(slot, self._seed, place)
        if state == BAD or entry.index <= self._proven_index:
            at = place * SLOT_BYTES
            self.flaws.append(Flaw(FlawKind.TABLE, segment.file, at, f"the slot of entry {entry.index}", entry.index))
        segment.positions.append(position)
        segment.checksums.append(checksum)
        self._note_term(entry.index, entry.term)
        self.position = position + ENTRY_HEAD_BYTES + len(entry.payload)
        if entry.index > self._snapshot_index:
            self._entries.append(entry)

    def _pass_over(self, place: int, position: int, slot: Slot | None) -> bool:
        segment = self._segment
        last_good = self._table.last_good()
        if slot is None and (last_good is None or last_good < place):
            # Nothing shows that there was another entry.
            return self._end(Ending.CLEAN, self.position, "")
        assert segment.checksums is not None
        self.flaws.append(Flaw(FlawKind.BODY, segment.file, position, f"entry {self.index} is damaged", self.index))
        segment.positions.append(position if slot is not None else 0)
        segment.checksums.append(slot.checksum if slot is not None else 0)
        if slot is not None:
            self._note_term(self.index - 1, slot.term)
            self.position = slot.position + ENTRY_HEAD_BYTES + slot.length
        return True

    def _note_term(self, index: int, term: int) -> None:
        if term > self._term:
            self._terms.note(index, term)
            self._term = term

    def _blank_sectors(self, slot: Slot) -> Work[int]:
        """Number of sectors of zeros among all sectors that the entry touches; bytes behind the end of the file count
        as zeros."""
        start = slot.position // SECTOR_BYTES * SECTOR_BYTES
        end = align(slot.position + ENTRY_HEAD_BYTES + slot.length)
        count = 0
        for position in range(start, end, LOOK_BYTES):
            wanted = min(LOOK_BYTES, end - position)
            data = yield from self._window.look(position, wanted)
            count += blank_sectors(data.ljust(wanted, b"\0"), position)
        return count


assert LOOK_BYTES % SECTOR_BYTES == 0
assert NEVER == 0, "a slot that was never written is in no state"
