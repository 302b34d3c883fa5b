"""Reads a store and reports what is in it and what is wrong with it. Changes nothing.

The order: the files and their heads; the newest intact snapshot; the tables of the segments below it; then every entry
after it. It emits the contents of the snapshot and the entries on the way, so that the owner can build its state while
the disk reads on. A deep scan also reads everything that a restart does not need.
"""

from __future__ import annotations

from collections.abc import Callable

from pandomq.ids import ClusterId, LogIndex, NodeName, Term
from pandomq.journal.chain import ChainPoints
from pandomq.journal.checksums import CHAIN_START
from pandomq.journal.events import Event, Flaw, FlawKind, RecoveryProgress, RecoveryStage, RestoredPiece, SnapshotBegins
from pandomq.journal.limits import JournalSettings
from pandomq.journal.paging.page_scan import PageScan
from pandomq.journal.recovery.file_scan import Expected, FileScan, SegmentFile
from pandomq.journal.segments.layout import SLOT, SLOT_BYTES, TABLE_OFFSET, Identity, Seal
from pandomq.journal.segments.log_end import NO_LIMIT, LogEnd, Start, begin_segment
from pandomq.journal.segments.scan import SegmentScan
from pandomq.journal.segments.segment import Segment, SegmentList
from pandomq.journal.segments.table import SlotTable, sealed_positions, sealed_slots
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.snapshots.snapshot import (
    OWN_KINDS,
    BadSnapshot,
    SnapshotBase,
    SnapshotHead,
    check,
    read_foundation,
    read_pieces,
)
from pandomq.journal.terms import Terms
from pandomq.journal.work import Work, read


class StoreScan:
    def __init__(
        self, settings: JournalSettings, expected: Expected, emit: Callable[[Event], None], *, deep: bool = False
    ) -> None:
        self._settings = settings
        self._expected = expected
        self._emit = emit
        self._deep = deep
        self.file_scan = FileScan()
        self.page_scan = PageScan(self.file_scan)
        self.catalogue = SegmentList()
        self.terms = Terms()
        self.points = ChainPoints()
        self.snapshot: SnapshotHead | None = None
        self.end: LogEnd | None = None
        """None if the store is new."""

    @property
    def flaws(self) -> list[Flaw]:
        return self.file_scan.flaws

    @property
    def snapshot_index(self) -> int:
        return self.snapshot.last_index if self.snapshot is not None else 0

    def run(self, identified: Callable[[Identity], None] = lambda identity: None) -> Work[None]:
        """Calls `identified` with the identity of the store before it emits anything else; not for a new store."""
        file_scan = self.file_scan
        yield from file_scan.run(self._settings, self._expected)
        state = file_scan.state
        if state is None:
            return
        size_bytes = sum(file_scan.sizes.values())
        self._emit(RecoveryProgress(RecoveryStage.FILES, size_bytes, size_bytes))
        yield from self._choose_snapshot()
        identified(Identity(ClusterId(state.cluster_id), NodeName(state.node_name)))
        old, recent = self._split()
        yield from self._take_old(old, recent)
        start = Start(0, 0, CHAIN_START)
        if self.snapshot is not None:
            start = Start(self.snapshot.last_index, self.snapshot.term, self.snapshot.chain)
        yield from self._hand_out_snapshot()
        self.end = LogEnd(
            self._settings,
            start,
            state.cut_from,
            state.segment_newest,
            self.catalogue,
            self.terms,
            self.points,
            self._emit,
        )
        yield from self.end.run(recent)
        if self.snapshot is not None and self.terms.last < self.snapshot.term:
            # The segment that should contain the term of its entry has lost it.
            self.terms.note(self.snapshot.last_index, self.snapshot.term)
        self.flaws.extend(self.end.flaws)
        if self._deep:
            yield from self._look_deeper(old)

    # The snapshot.

    def _choose_snapshot(self) -> Work[None]:
        for head in list(self.file_scan.snapshots):
            try:
                foundation = yield from self._scan_snapshot(head)
                yield from self.page_scan.take(head, foundation.places)
            except BadSnapshot as bad:
                self.flaws.append(Flaw(FlawKind.SNAPSHOT, head.file, bad.offset, bad.text, head.last_index))
                self.file_scan.snapshots.remove(head)
                self.file_scan.leftovers.append(head.file)
                continue
            if self.snapshot is None:
                self.snapshot, self.points = head, foundation.points
        self.file_scan.leftovers += self.page_scan.leftovers()

    def _scan_snapshot(self, head: SnapshotHead) -> Work[SnapshotBase]:
        """Reads the first good snapshot in full; of older ones it reads only their references, unless everything is
        scanned."""
        if self.snapshot is None or self._deep:
            return (yield from check(self._window(head), head.cluster_id, head))
        return (yield from read_foundation(self._window(head)))

    def _window(self, head: SnapshotHead) -> ReadWindow:
        return ReadWindow(head.file, self.file_scan.sizes[head.file], self._settings.replay_chunk_bytes)

    def _hand_out_snapshot(self) -> Work[None]:
        head = self.snapshot
        if head is None:
            return
        self._emit(SnapshotBegins(LogIndex(head.last_index), Term(head.term)))
        size_bytes = self.file_scan.sizes[head.file]
        done = [0]

        def take(kind: int, data: bytes) -> bool:
            if kind < OWN_KINDS:
                self._emit(RestoredPiece(kind, data))
            done[0] += len(data)
            self._emit(RecoveryProgress(RecoveryStage.SNAPSHOT, done[0], size_bytes))
            return True

        yield from read_pieces(self._window(head), take)

    # Files below the snapshot.

    def _split(self) -> tuple[list[SegmentFile], list[SegmentFile]]:
        """Segments that the snapshot covers in full, and those that have to be read."""
        segments = self.file_scan.segments
        following = [found.first_index for found in segments[1:]]
        count = sum(first_index <= self.snapshot_index + 1 for first_index in following)
        return segments[:count], segments[count:]

    def _take_old(self, old: list[SegmentFile], recent: list[SegmentFile]) -> Work[None]:
        for found in old:
            yield from self._take_segment(found)
        covered = bool(recent) and recent[0].first_index <= self.snapshot_index
        if self.snapshot is not None and not covered and self.terms.last < self.snapshot.term:
            # The entry of the snapshot is not there to show its term.
            self.terms.note(self.snapshot.last_index, self.snapshot.term)

    def _take_segment(self, found: SegmentFile) -> Work[None]:
        segment = begin_segment(found, self.catalogue)
        data = yield from read(found.file, TABLE_OFFSET, found.slot_count * SLOT_BYTES)
        seal = found.seal
        count = sealed_slots(data, seal, found.first_index)
        if seal is None or not count:
            scan = self._scan_old(found, segment, data, self.terms)
            yield from scan.run()
            self.flaws.extend(scan.flaws)
            segment.fold_chain()
            if scan.flaws:
                # The checksum of a skipped entry may be unknown.
                segment.chain_after = 0
        else:
            segment.positions = sealed_positions(data, count)
            segment.end, segment.chain_after = seal.end, seal.chain_after
            self._note_terms(segment, data, seal)
            if found.size_bytes < seal.end:
                text = f"it ends {seal.end - found.size_bytes} bytes too early"
                self.flaws.append(Flaw(FlawKind.BODY, found.file, found.size_bytes, text, found.first_index))
        segment.checksums = None
        segment.sealed = True

    def _scan_old(self, found: SegmentFile, segment: Segment, data: bytes, terms: Terms) -> SegmentScan:
        return SegmentScan(
            segment,
            SlotTable(data, found.seed),
            found.seed,
            ReadWindow(found.file, found.size_bytes, self._settings.replay_chunk_bytes),
            proven_index=NO_LIMIT,
            snapshot_index=NO_LIMIT,
            limit_index=NO_LIMIT,
            terms=terms,
            take=lambda entries: None,
        )

    def _note_terms(self, segment: Segment, table: bytes, seal: Seal) -> None:
        if seal.term_count == 1:
            self.terms.note(segment.first_index, seal.term_last)
            return
        for place in range(len(segment.positions)):
            self.terms.note(segment.first_index + place, SLOT.unpack_from(table, place * SLOT_BYTES)[0])

    # The parts that a restart does not need.

    def _look_deeper(self, old: list[SegmentFile]) -> Work[None]:
        total_bytes = sum(found.size_bytes for found in old) + self.page_scan.size_bytes
        done_bytes = 0
        for found in old:
            data = yield from read(found.file, TABLE_OFFSET, found.slot_count * SLOT_BYTES)
            opening = found.opening
            assert opening is not None
            copy = Segment(found.number, opening.first_index, 0, found.slot_count, found.body_offset)
            scan = self._scan_old(found, copy, data, Terms())
            yield from scan.run()
            self.flaws.extend(flaw for flaw in scan.flaws if flaw not in self.flaws)
            done_bytes += found.size_bytes
            self._emit(RecoveryProgress(RecoveryStage.BODIES, done_bytes, total_bytes))
        yield from self.page_scan.look_deeper(
            self.flaws, lambda more: self._emit(RecoveryProgress(RecoveryStage.BODIES, done_bytes + more, total_bytes))
        )
