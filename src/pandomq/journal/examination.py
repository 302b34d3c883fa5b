"""Reads a store and finds out what is in it and what is wrong with it. Changes nothing.

The order: what files there are and what their heads say; the newest snapshot that is whole; the tables of the segments
below it; then every entry after it. What the snapshot and the entries hold is handed out on the way, so that its owner
can build its state while the disk reads on. Deep, it also reads all that a restart can do without.
"""

from __future__ import annotations

from collections.abc import Callable

from pandomq.ids import ClusterId, LogIndex, NodeName, Term
from pandomq.journal.chain import ChainPoints
from pandomq.journal.checksums import CHAIN_START
from pandomq.journal.events import Event, Flaw, FlawKind, Progress, SnapshotBegins, SnapshotPiece, Stage
from pandomq.journal.layout import SLOT, SLOT_BYTES, TABLE_OFFSET, Identity, Seal
from pandomq.journal.limits import JournalSettings
from pandomq.journal.log_end import NO_LIMIT, LogEnd, Start, begin_segment
from pandomq.journal.page_survey import PageSurvey
from pandomq.journal.scan import Scan
from pandomq.journal.segment import Catalogue, Segment
from pandomq.journal.snapshot import (
    OWN_KINDS,
    Foundation,
    SnapshotBad,
    SnapshotHead,
    check,
    read_foundation,
    read_pieces,
)
from pandomq.journal.survey import Expected, SegmentFile, Survey
from pandomq.journal.table import Table, sealed_positions, sealed_slots
from pandomq.journal.terms import Terms
from pandomq.journal.window import Window
from pandomq.journal.work import Work, read


class Examination:
    def __init__(
        self, settings: JournalSettings, expected: Expected, emit: Callable[[Event], None], *, deep: bool = False
    ) -> None:
        self._settings = settings
        self._expected = expected
        self._emit = emit
        self._deep = deep
        self.survey = Survey()
        self.page_survey = PageSurvey(self.survey)
        self.catalogue = Catalogue()
        self.terms = Terms()
        self.points = ChainPoints()
        self.snapshot: SnapshotHead | None = None
        self.end: LogEnd | None = None
        """None if the store is new."""

    @property
    def flaws(self) -> list[Flaw]:
        return self.survey.flaws

    @property
    def snapshot_index(self) -> int:
        return self.snapshot.last_index if self.snapshot is not None else 0

    def run(self, surveyed: Callable[[Identity], None] = lambda identity: None) -> Work[None]:
        """`surveyed` is told whose store it is, unless it is new, before anything is handed out."""
        survey = self.survey
        yield from survey.run(self._settings, self._expected)
        state = survey.state
        if state is None:
            return
        size_bytes = sum(survey.sizes.values())
        self._emit(Progress(Stage.FILES, size_bytes, size_bytes))
        yield from self._choose_snapshot()
        surveyed(Identity(ClusterId(state.cluster_id), NodeName(state.node_name)))
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
        if self.snapshot is not None and not self.terms.last:
            # The segment that should have told the term of its entry has lost it.
            self.terms.note(self.snapshot.last_index, self.snapshot.term)
        self.flaws.extend(self.end.flaws)
        if self._deep:
            yield from self._look_deeper(old)

    # The snapshot.

    def _choose_snapshot(self) -> Work[None]:
        for head in list(self.survey.snapshots):
            try:
                foundation = yield from self._examine(head)
                yield from self.page_survey.take(head, foundation.places)
            except SnapshotBad as bad:
                self.flaws.append(Flaw(FlawKind.SNAPSHOT, head.file, bad.offset, bad.text, head.last_index))
                self.survey.snapshots.remove(head)
                self.survey.leftovers.append(head.file)
                continue
            if self.snapshot is None:
                self.snapshot, self.points = head, foundation.points
        self.survey.leftovers += self.page_survey.leftovers()

    def _examine(self, head: SnapshotHead) -> Work[Foundation]:
        """All of the first that is good; of older ones only what they refer to, unless everything is looked at."""
        if self.snapshot is None or self._deep:
            return (yield from check(self._window(head), head.cluster_id, head))
        return (yield from read_foundation(self._window(head)))

    def _window(self, head: SnapshotHead) -> Window:
        return Window(head.file, self.survey.sizes[head.file], self._settings.replay_chunk_bytes)

    def _hand_out_snapshot(self) -> Work[None]:
        head = self.snapshot
        if head is None:
            return
        self._emit(SnapshotBegins(LogIndex(head.last_index), Term(head.term)))
        size_bytes = self.survey.sizes[head.file]
        done = [0]

        def take(kind: int, data: bytes) -> bool:
            if kind < OWN_KINDS:
                self._emit(SnapshotPiece(kind, data))
            done[0] += len(data)
            self._emit(Progress(Stage.SNAPSHOT, done[0], size_bytes))
            return True

        yield from read_pieces(self._window(head), take)

    # Files below the snapshot.

    def _split(self) -> tuple[list[SegmentFile], list[SegmentFile]]:
        """Segments of which the snapshot covers all, and those that are to be read."""
        segments = self.survey.segments
        following = [found.first_index for found in segments[1:]]
        count = sum(first_index <= self.snapshot_index + 1 for first_index in following)
        return segments[:count], segments[count:]

    def _take_old(self, old: list[SegmentFile], recent: list[SegmentFile]) -> Work[None]:
        for found in old:
            yield from self._take_segment(found)
        covered = bool(recent) and recent[0].first_index <= self.snapshot_index
        if self.snapshot is not None and not covered and self.terms.last < self.snapshot.term:
            # The entry of the snapshot is not there to tell its term.
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
        else:
            segment.positions = sealed_positions(data, count)
            segment.end, segment.chain_after = seal.end, seal.chain_after
            self._note_terms(segment, data, seal)
            if found.size_bytes < seal.end:
                text = f"it ends {seal.end - found.size_bytes} bytes too early"
                self.flaws.append(Flaw(FlawKind.BODY, found.file, found.size_bytes, text, found.first_index))
        segment.checksums = None
        segment.sealed = True

    def _scan_old(self, found: SegmentFile, segment: Segment, data: bytes, terms: Terms) -> Scan:
        return Scan(
            segment,
            Table(data, found.seed),
            found.seed,
            Window(found.file, found.size_bytes, self._settings.replay_chunk_bytes),
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

    # What a restart can do without.

    def _look_deeper(self, old: list[SegmentFile]) -> Work[None]:
        total_bytes = sum(found.size_bytes for found in old) + self.page_survey.size_bytes
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
            self._emit(Progress(Stage.BODIES, done_bytes, total_bytes))
        yield from self.page_survey.look_deeper(
            self.flaws, lambda more: self._emit(Progress(Stage.BODIES, done_bytes + more, total_bytes))
        )
