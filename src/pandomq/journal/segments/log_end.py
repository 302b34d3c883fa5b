"""Reads the segments after the snapshot, in order, and finds where the log ends and why.

The log ends where nothing follows, at a tail that was being written when the broker stopped, at a cut that was begun,
or at damage. `cut` names everything behind that place; recovery removes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pandomq.ids import LogIndex, Term
from pandomq.journal.chain import ChainPoints
from pandomq.journal.checksums import CHAIN_BASE, CHAIN_PRIME
from pandomq.journal.events import (
    Entry,
    Event,
    Flaw,
    LogCorruption,
    RecoveryProgress,
    RecoveryStage,
    Replayed,
    TornTail,
)
from pandomq.journal.faults import corrupt
from pandomq.journal.limits import JournalSettings
from pandomq.journal.recovery.file_scan import SegmentFile
from pandomq.journal.segments.cutting import CutPlan, SegmentRange
from pandomq.journal.segments.layout import SLOT_BYTES, TABLE_OFFSET
from pandomq.journal.segments.scan import Ending, SegmentScan
from pandomq.journal.segments.segment import Segment, SegmentList
from pandomq.journal.segments.table import SlotTable, sealed_slots
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.terms import Terms
from pandomq.journal.work import Work, read

NO_LIMIT = 2**62


class Start(NamedTuple):
    """The start of the log: a snapshot, or nothing."""

    last_index: int
    term: int
    chain: int


class LogDefect(NamedTuple):
    """Why a segment, or what follows it, is not part of the log."""

    text: str
    damage: bool


class SegmentTail(NamedTuple):
    """A segment that was read, for recovery to repair and continue."""

    found: SegmentFile
    segment: Segment
    table: SlotTable
    scan: SegmentScan


class LogEnd:
    def __init__(
        self,
        settings: JournalSettings,
        start: Start,
        cut_from: int,
        segment_newest: int,
        catalogue: SegmentList,
        terms: Terms,
        points: ChainPoints,
        emit: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._start = start
        self._limit_index = cut_from or NO_LIMIT
        self._segment_newest = segment_newest
        self._catalogue = catalogue
        self._terms = terms
        self._points = points
        self._emit = emit
        self._proven_index = start.last_index
        self._done_bytes = self._total_bytes = 0
        self.last_index = start.last_index
        self.chain = start.chain
        self.tails: list[SegmentTail] = []
        self.flaws: list[Flaw] = []
        self.cut: CutPlan | None = None
        self.torn = False
        """The cut removes entries that were never finished."""
        self.damage: LogCorruption | None = None

    @property
    def size_bytes(self) -> int:
        """Of the segments that were read."""
        return sum(tail.segment.end - tail.found.body_offset for tail in self.tails)

    def torn_tail(self) -> TornTail | None:
        if not self.torn or self.cut is None:
            return None
        parts = [*([self.cut.shortened] if self.cut.shortened else []), *self.cut.deleted]
        cut_bytes = sum(part.end - part.offset for part in parts)
        return TornTail(parts[0].file, parts[0].offset, cut_bytes)

    def run(self, files: list[SegmentFile]) -> Work[None]:
        segments = [begin_segment(found, self._catalogue) for found in files]
        yield from self._find_proof(files)
        self._total_bytes = sum(found.size_bytes for found in files)
        for place, (found, segment) in enumerate(zip(files, segments, strict=True)):
            table = yield from read_table(found)
            # Entries from the start of the next segment on belong to that segment, and a sealed one got no more.
            following = files[place + 1].first_index if place + 1 < len(files) else NO_LIMIT
            sealed = NO_LIMIT if found.seal is None else found.seal.last_index + 1
            scan = self._scan(found, segment, table, min(following, sealed, self._limit_index))
            tail = SegmentTail(found, segment, table, scan)
            trouble = self._gap(tail)
            if trouble is None:
                yield from scan.run()
                self.tails.append(tail)
                self.flaws += scan.flaws
                trouble = self._join(tail)
            self._done_bytes += found.size_bytes
            if trouble is not None:
                yield from self._stop(tail, trouble, files[place + 1 :], segments[place + 1 :])
                break
            segment.sealed = found.seal is not None or place < len(files) - 1

    def _scan(self, found: SegmentFile, segment: Segment, table: SlotTable, limit_index: int) -> SegmentScan:
        window = ReadWindow(found.file, found.size_bytes, self._settings.replay_chunk_bytes)

        def take(entries: list[Entry]) -> None:
            self._emit(Replayed(entries))
            self._emit(RecoveryProgress(RecoveryStage.LOG, self._done_bytes + window.start, self._total_bytes))

        return SegmentScan(
            segment,
            table,
            found.seed,
            window,
            proven_index=self._proven_index,
            snapshot_index=self._start.last_index,
            limit_index=limit_index,
            terms=self._terms,
            take=take,
        )

    def _find_proof(self, files: list[SegmentFile]) -> Work[None]:
        """Finds up to where the log is known to have been synced. The known index only grows, so the last segment that
        has one has the highest."""
        proven = [self._start.last_index, *(mark.synced_index for found in files for mark in found.marks)]
        # A segment is noted in the hard state once entries of it are synced.
        proven += [found.first_index for found in files if found.number <= self._segment_newest]
        for found in reversed(files):
            table = yield from read_table(found)
            if table.last_good() is not None:
                proven.append(table.proven_index(found.first_index))
                break
        self._proven_index = min(max(proven), self._limit_index - 1)

    # How one segment follows the one before.

    def _gap(self, tail: SegmentTail) -> LogDefect | None:
        """The reason why the segment does not continue the log, if any."""
        segment = tail.segment
        expected = self.last_index + 1
        if segment.first_index > expected:
            text = f"entries {expected} to {segment.first_index - 1} are missing"
            return LogDefect(text, expected <= self._proven_index)
        if segment.first_index < expected:
            if self.tails:
                return LogDefect(f"it begins with entry {segment.first_index}, which another segment contains", True)
            return None
        if not segment.chain_before:
            # Its head was damaged, and does not show this.
            segment.tell_chain_from(self.last_index, self.chain)
        elif segment.chain_before != self.chain:
            return LogDefect("it continues another log: the chain of checksums differs", True)
        return None

    def _join(self, tail: SegmentTail) -> LogDefect | None:
        """Adds the segment that was read to the log. Returns the reason why nothing may follow it, if any."""
        segment, scan, start = tail.segment, tail.scan, self._start
        if segment.first_index <= start.last_index <= segment.last_index:
            # It begins before the snapshot, whose chain has to be equal. Skipped entries cannot show it.
            segment.fold_chain()
            if not scan.flaws and segment.chain_before and segment.chain_at(start.last_index) != start.chain:
                raise corrupt(segment.file, 0, "the log and the snapshot contradict each other")
            if scan.flaws or not segment.chain_before:
                segment.tell_chain_from(start.last_index, start.chain)
            follow_chain(segment, start.last_index + 1, start.chain, self._points)
        elif segment.last_index > start.last_index:
            follow_chain(segment, segment.first_index, segment.chain_before, self._points)
        else:
            segment.chain_after = 0
        if segment.last_index > self.last_index:
            self.last_index = segment.last_index
            self.chain = segment.chain_after
        if scan.ending is not Ending.CLEAN:
            return LogDefect(scan.text, scan.ending is Ending.DAMAGED)
        if segment.last_index < start.last_index:
            # A snapshot is saved once the log is synced up to it, and this segment has to hold the part that no later
            # one holds.
            return LogDefect(f"entry {segment.last_index + 1} was synced, but is missing", True)
        if not segment.positions:
            return LogDefect("none of its entries was finished", False)
        if self.last_index + 1 >= self._limit_index:
            return LogDefect("what follows is cut off", False)
        return None

    # The end.

    def _stop(
        self, tail: SegmentTail, trouble: LogDefect, files: list[SegmentFile], segments: list[Segment]
    ) -> Work[None]:
        """Ends the log at this place: nothing behind it belongs to the log."""
        found, segment = tail.found, tail.segment
        index, kept = self.last_index + 1, len(segment.positions)
        deleted = [SegmentRange(later.file, later.body_offset, later.size_bytes) for later in files]
        position = tail.scan.position
        shortened: SegmentRange | None = SegmentRange(found.file, position, max(found.size_bytes, position))
        if not kept:
            # The whole file is removed.
            deleted.insert(0, SegmentRange(found.file, position, found.size_bytes))
            segments = [segment, *segments]
            shortened = None
        for later in segments:
            self._catalogue.remove(later)
        segment.sealed = trouble.damage or tail.found.seal is not None
        self.cut = CutPlan(shortened, kept, max(kept, len(tail.table)), deleted)
        self.torn = not trouble.damage and index < self._limit_index
        if trouble.damage:
            known_index, known_term, end_known = yield from self._known([found, *files])
            self.damage = LogCorruption(
                found.file, position, LogIndex(index), trouble.text, LogIndex(known_index), Term(known_term), end_known
            )

    def _known(self, files: list[SegmentFile]) -> Work[tuple[int, int, bool]]:
        """The last entry that a seal or a table shows, and whether there was none after it: a table that is cut short,
        or has something behind its last good slot, does not prove that."""
        index, term, end_known = self.last_index, self._terms.last, True
        for found in reversed(files):
            if found.seal is not None:
                index, term = max((index, term), (found.seal.last_index, found.seal.term_last))
                break
            table = yield from read_table(found)
            place = table.last_good()
            if found.size_bytes < found.body_offset or len(table) > (0 if place is None else place + 1):
                end_known = False
            if place is not None:
                index, term = max((index, term), (found.first_index + place, table.slot(place).term))
                break
        if index < self._proven_index:
            index, end_known = self._proven_index, False
        return index, term, end_known


def begin_segment(found: SegmentFile, catalogue: SegmentList) -> Segment:
    opening = found.opening
    assert opening is not None
    segment = Segment(found.number, opening.first_index, opening.chain_before, found.slot_count, found.body_offset)
    catalogue.add(segment)
    return segment


def read_table(found: SegmentFile) -> Work[SlotTable]:
    data = yield from read(found.file, TABLE_OFFSET, found.slot_count * SLOT_BYTES)
    return SlotTable(data, found.seed, sealed_slots(data, found.seal, found.first_index))


def follow_chain(segment: Segment, index: int, chain: int, points: ChainPoints) -> None:
    """Computes the chain from this entry to the segment's last, and notes it there."""
    assert segment.checksums is not None
    stride = points.stride
    for checksum in segment.checksums[index - segment.first_index :]:
        chain = (chain * CHAIN_BASE + checksum + 1) % CHAIN_PRIME
        if not index % stride:
            points.record(index, chain)
            stride = points.stride
        index += 1
    segment.chain_after = chain
