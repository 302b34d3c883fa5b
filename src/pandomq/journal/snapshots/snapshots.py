"""Decides when a snapshot is due, and keeps the one that is being written."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pandomq.ids import LogIndex
from pandomq.journal.chain import ChainPoints
from pandomq.journal.effects import Lane
from pandomq.journal.events import Event, SnapshotFailed, SnapshotSaved
from pandomq.journal.limits import JournalSettings
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.paging.page_file import StoredPage
from pandomq.journal.paging.pages import Pages
from pandomq.journal.segments.layout import Identity
from pandomq.journal.segments.reclaimer import Reclaimer
from pandomq.journal.snapshots.snapshot_writer import SnapshotWriter
from pandomq.journal.space import Space
from pandomq.journal.work import Task


class SnapshotStore:
    __slots__ = (
        "_appended_bytes",
        "_covered_bytes",
        "_emit",
        "_flush",
        "_identity",
        "_outbox",
        "_pages",
        "_reclaimer",
        "_settings",
        "_settled_index",
        "_space",
        "_writer",
        "last_bytes",
    )

    def __init__(
        self,
        settings: JournalSettings,
        identity: Identity,
        outbox: DiskRequests,
        space: Space,
        reclaimer: Reclaimer,
        pages: Pages,
        emit: Callable[[Event], None],
        flush: Callable[[], None],
        settled_index: Callable[[], int],
        appended_bytes: Callable[[], int],
        *,
        last_bytes: int,
        log_bytes: int,
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._outbox = outbox
        self._space = space
        self._reclaimer = reclaimer
        self._pages = pages
        self._emit = emit
        self._flush = flush
        self._settled_index = settled_index
        self._appended_bytes = appended_bytes
        self.last_bytes = last_bytes
        """The size of the newest snapshot."""
        self._writer: SnapshotWriter | None = None
        self._covered_bytes = -log_bytes
        """The bytes that had been appended when the last one was begun; the bytes at the start count as negative."""

    @property
    def due(self) -> bool:
        wanted_bytes = max(self._settings.snapshot_log_bytes, 2 * self.last_bytes)
        if self._space.low:
            # Reclaiming waits for it.
            wanted_bytes = min(wanted_bytes, self._settings.segment_bytes)
        # Page files that only older snapshots refer to wait for it, too.
        waiting_bytes = self._appended_bytes() - self._covered_bytes + self._pages.held_bytes
        return self._writer is None and waiting_bytes >= wanted_bytes

    def settled(self) -> None:
        if self._writer is not None:
            self._writer.wake()

    def begin(
        self, index: int, term: int, chain: int, points: ChainPoints, referred: Sequence[StoredPage]
    ) -> SnapshotWriter:
        assert self._writer is None, "one at a time"
        assert index > max(self._reclaimer.snapshots, default=0), "there is one of this state"
        writer = self._writer = SnapshotWriter(
            self._settings,
            self._identity,
            self._space,
            self._settled_index,
            self._flush,
            index=index,
            term=term,
            chain=chain,
            points=points.up_to(index),
            pages=self._pages,
            referred=referred,
        )
        self._pages.hold(index, referred)
        covered_bytes = self._appended_bytes()
        writer.task = Task(
            self._outbox, Lane.BULK, writer.work(), lambda outcome: self._over(LogIndex(index), outcome, covered_bytes)
        )
        writer.task.start()
        return writer

    def _over(self, index: LogIndex, outcome: str | int, covered_bytes: int) -> None:
        self._writer = None
        if isinstance(outcome, str):
            self._pages.release(index)
            self._emit(SnapshotFailed(index, outcome))
            return
        self.last_bytes = outcome
        self._covered_bytes = covered_bytes
        self._emit(SnapshotSaved(index, outcome))
        self._reclaimer.snapshot_saved(index)
