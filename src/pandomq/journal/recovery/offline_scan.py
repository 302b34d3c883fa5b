"""Reads a store without changing it, and reports what it found: for tools.

Used like a journal: `open`, then requests, completions and events until `over`. A deep scan reads everything;
otherwise it reads what a restart would read.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.effects import Completion, FileName, Lane, Request
from pandomq.journal.events import Event, Flaw, LogCorruption, RecoveryProgress, TornTail
from pandomq.journal.faults import StoreFault
from pandomq.journal.limits import JournalSettings
from pandomq.journal.names import aside_number
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.paging.page_file import PagePlace
from pandomq.journal.paging.page_repair import Prune, forget_pages
from pandomq.journal.recovery.file_scan import Expected
from pandomq.journal.recovery.store_scan import StoreScan
from pandomq.journal.segments.layout import Identity
from pandomq.journal.segments.segment import Segment
from pandomq.journal.work import Task


class FileReport(msgspec.Struct, frozen=True):
    file: str
    size_bytes: int
    first_index: int
    last_index: int


class StoreReport(msgspec.Struct, frozen=True):
    fault: str = ""
    """The reason why the store cannot be opened at all; then the other fields hold what was known until then."""
    new: bool = False
    """The store is empty."""
    cluster_id: str = ""
    node_name: str = ""
    epoch: int = 0
    epoch_id: str = ""
    term: int = 0
    vote: str | None = None
    first_index: int = 0
    last_index: int = 0
    last_term: int = 0
    known_index: int = 0
    """The index of the last entry that is known to have existed, also if it is damaged."""
    known_term: int = 0
    snapshots: tuple[int, ...] = ()
    """Their indexes, newest first."""
    files: tuple[FileReport, ...] = ()
    aside: tuple[str, ...] = ()
    """Files with entries that were cut off."""
    size_bytes: int = 0
    torn: TornTail | None = None
    damage: LogCorruption | None = None
    flaws: tuple[Flaw, ...] = ()
    damaged_pages: tuple[PagePlace, ...] = ()
    """Their messages are lost; `forget_pages` lets the store go on without them."""

    @property
    def rank(self) -> tuple[int, int, int]:
        """Of two stores of one cluster the higher one is newer."""
        return self.epoch, self.known_term, self.known_index

    @property
    def sound(self) -> bool:
        """The store has no defect. A torn tail is none: its entries were never confirmed."""
        return not self.fault and self.damage is None and not self.flaws


class OfflineScan:
    def __init__(self, *, deep: bool, settings: JournalSettings | None = None) -> None:
        self._outbox = DiskRequests()
        self._events: list[Event] = []
        self._store_scan = StoreScan(settings or JournalSettings(), Expected(None, None), self._hear, deep=deep)
        self._fault: StoreFault | None = None
        self.over = False

    def open(self) -> None:
        Task(self._outbox, Lane.READ, self._store_scan.run(), self._finished).start()

    def forget_pages(self, prune: Prune, forgotten: Callable[[FileName], None]) -> None:
        """After a deep scan: see `page_repair`; calls `forgotten` with the file that keeps their bytes. The
        caller holds the lock of the store."""
        file_scan, state = self._store_scan.file_scan, self._store_scan.file_scan.state
        assert self.over and state is not None
        snapshots = [(head, file_scan.sizes[head.file]) for head in file_scan.snapshots]
        damaged = frozenset(self._store_scan.page_scan.damaged)
        identity = Identity(ClusterId(state.cluster_id), NodeName(state.node_name))
        self.over = False

        def finish(aside: FileName) -> None:
            self.over = True
            forgotten(aside)

        work = forget_pages(snapshots, damaged, identity, file_scan.number_last + 1, prune)
        Task(self._outbox, Lane.BULK, work, finish).start()

    def take_requests(self) -> list[Request]:
        return self._outbox.take()

    def completed(self, completion: Completion) -> None:
        try:
            self._outbox.completed(completion)
        except StoreFault as fault:
            self._fault = fault
            self.over = True

    def take_progress(self) -> list[RecoveryProgress]:
        events = [event for event in self._events if isinstance(event, RecoveryProgress)]
        self._events.clear()
        return events

    def report(self) -> StoreReport:
        store_scan = self._store_scan
        file_scan, end, state = store_scan.file_scan, store_scan.end, store_scan.file_scan.state
        report = StoreReport(
            fault="" if self._fault is None else str(self._fault),
            new=state is None and self._fault is None,
            snapshots=tuple(head.last_index for head in file_scan.snapshots),
            files=tuple(map(_describe, store_scan.catalogue)),
            aside=tuple(file for file in file_scan.sizes if aside_number(file) is not None),
            size_bytes=sum(file_scan.sizes.values()),
            flaws=tuple(file_scan.flaws),
            damaged_pages=tuple(store_scan.page_scan.damaged),
        )
        if state is not None:
            hard = state.hard
            report = msgspec.structs.replace(
                report,
                cluster_id=state.cluster_id,
                node_name=state.node_name,
                epoch=hard.epoch,
                epoch_id=hard.epoch_id,
                term=hard.term,
                vote=hard.vote,
            )
        if end is not None:
            last_index, last_term = end.last_index, store_scan.terms.last
            report = msgspec.structs.replace(
                report,
                first_index=store_scan.catalogue.whole_from(last_index),
                last_index=last_index,
                last_term=last_term,
                known_index=last_index if end.damage is None else end.damage.known_index,
                known_term=last_term if end.damage is None else end.damage.known_term,
                torn=end.torn_tail(),
                damage=end.damage,
            )
        return report

    def _hear(self, event: Event) -> None:
        # The log's entries are not kept, and must not accumulate.
        if isinstance(event, RecoveryProgress):
            self._events.append(event)

    def _finished(self, _: None) -> None:
        self.over = True


def _describe(segment: Segment) -> FileReport:
    return FileReport(segment.file, segment.size_bytes, segment.first_index, segment.last_index)
