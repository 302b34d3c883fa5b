"""Gives back the disk: segments with nothing live are deleted, sparse ones compacted.

The owner says how many payload bytes of an entry are live, and later how many of them no longer are. That counts once
the entry that released them is committed: until then it could still be cut off the log, and the message be live again.
Only what two snapshots cover goes, so that a restart is possible without the newest one; if the disk is nearly full one
has to do. Entries that someone still needs whole are pinned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pandomq.ids import LogIndex
from pandomq.journal.compaction import Compaction, LiveRange
from pandomq.journal.effects import Delete, Effect, FileName, Lane, SyncDirectory, Ticket
from pandomq.journal.events import Event, Flaw, FlawFound, RangesWanted
from pandomq.journal.layout import Identity
from pandomq.journal.limits import COMPACT_RUN_MAX, SNAPSHOTS_KEPT, JournalSettings
from pandomq.journal.live_bytes import LiveBytes
from pandomq.journal.names import snapshot_file
from pandomq.journal.outbox import Outbox
from pandomq.journal.segment import Catalogue, CompactSegment, Segment, Stored
from pandomq.journal.space import Space
from pandomq.journal.work import Task, Work, perform

RUN_ALWAYS = 8
"""So many small files in a row are joined even if there is little to gain but their number."""


class Reclaimer:
    __slots__ = (
        "_catalogue",
        "_compaction",
        "_compaction_ticket",
        "_deleting",
        "_doomed",
        "_emit",
        "_identity",
        "_live",
        "_numbers",
        "_opened_number",
        "_outbox",
        "_pin_index",
        "_read",
        "_settings",
        "_space",
        "_unfit",
        "ready",
        "snapshots",
    )

    def __init__(
        self,
        settings: JournalSettings,
        identity: Identity,
        outbox: Outbox,
        catalogue: Catalogue,
        live: LiveBytes,
        space: Space,
        numbers: Iterator[int],
        opened_number: Callable[[], int],
        emit: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._identity = identity
        self._outbox = outbox
        self._catalogue = catalogue
        self._live = live
        self._space = space
        self._numbers = numbers
        self._opened_number = opened_number
        self._emit = emit
        self._pin_index: int | None = None
        self._compaction: Compaction | None = None
        self._compaction_ticket = Ticket(0)
        self._unfit: set[Stored] = set()
        """Segments that cannot be compacted, because they are damaged or because there was no space."""
        self._doomed: list[FileName] = []
        self._read: set[Stored] = set()
        """Files to be deleted once their readers are done."""
        self._deleting = False
        self.snapshots: list[int] = []
        """Their indexes, newest first."""
        self.ready = False
        """The owner has replayed the log: what it calls live is all that is."""
        live.on_dead = self._dead

    def pin(self, index: int | None) -> None:
        """Entries from this one on are needed whole."""
        self._pin_index = index

    def live_ranges(self, ticket: Ticket, ranges: Iterable[LiveRange], *, done: bool) -> None:
        assert self._compaction is not None and ticket == self._compaction_ticket
        self._compaction.answer(ranges, self._live.last_index(), done=done)

    def settled(self) -> None:
        if self._compaction is not None:
            self._compaction.wake()

    def _dead(self, stored: Stored) -> None:
        if self._may_go(stored):
            self.step()

    # Steps.

    @property
    def bound(self) -> int:
        """Entries up to this one are in snapshots."""
        needed = 1 if self._space.low else SNAPSHOTS_KEPT
        return self.snapshots[needed - 1] if len(self.snapshots) >= needed else 0

    def _may_go(self, stored: Stored) -> bool:
        # The newest stays until the disk has entries of the next: the hard state tells that it is there.
        if isinstance(stored, Segment) and stored.number >= self._opened_number():
            return False
        if self._pin_index is not None and stored.last_index >= self._pin_index and isinstance(stored, Segment):
            return False
        return self.ready and stored.last_index <= self.bound

    def snapshot_saved(self, index: int) -> None:
        self.snapshots.insert(0, index)
        self._unfit.clear()
        self.step()

    def step(self) -> None:
        """Whatever may go goes, and a compaction is begun if one is worth while."""
        if not self.ready:
            return
        for stored in [stored for stored in self._catalogue if not stored.live_bytes and self._may_go(stored)]:
            if stored not in self._sources():
                self._catalogue.remove(stored)
                self._doom(stored)
        # With the log before it partly gone, an older snapshot is of no use.
        for index in self.snapshots[1 if self._space.low else SNAPSHOTS_KEPT :]:
            self.snapshots.remove(index)
            self._doomed.append(snapshot_file(index))
        self._delete()
        if self._compaction is None:
            self._begin_compaction()

    def _sources(self) -> list[Stored]:
        return self._compaction.sources if self._compaction is not None else []

    # Deleting.

    def free(self, stored: Stored) -> None:
        """The last read of a file is done."""
        if stored in self._read:
            self._read.discard(stored)
            self._doomed.append(stored.file)
            self._delete()

    def _doom(self, stored: Stored) -> None:
        if stored.readers:
            self._read.add(stored)
        else:
            self._doomed.append(stored.file)

    def _delete(self) -> None:
        if self._doomed and not self._deleting:
            self._deleting = True
            Task(self._outbox, Lane.BULK, self._delete_all(), lambda _: None).start()

    def _delete_all(self) -> Work[None]:
        while self._doomed:
            doomed, self._doomed = self._doomed, []
            effects: list[Effect] = [Delete(file) for file in doomed]
            yield from perform(*effects, SyncDirectory())
        self._deleting = False

    # Compacting.

    def _begin_compaction(self) -> None:
        run = self._find_run()
        if not run:
            return
        compaction = Compaction(
            self._settings, self._identity, self._space, lambda: self._live.settled_index, run, next(self._numbers)
        )
        self._compaction = compaction
        self._compaction_ticket = self._outbox.next_ticket()
        compaction.task = Task(self._outbox, Lane.BULK, compaction.work(), self._compacted)
        compaction.task.start()
        self._emit(
            RangesWanted(self._compaction_ticket, LogIndex(compaction.first_index), LogIndex(compaction.last_index))
        )

    def _find_run(self) -> list[Stored]:
        settings = self._settings
        sparse_bytes = settings.segment_bytes * settings.sparse_percent // 100
        run: list[Stored] = []
        live_bytes = 0
        for stored in self._catalogue:
            fits = self._may_go(stored) and stored not in self._unfit and stored.live_bytes < sparse_bytes
            if not fits or live_bytes + stored.live_bytes > settings.segment_bytes or len(run) == COMPACT_RUN_MAX:
                if self._worth_while(run):
                    return run
                run, live_bytes = [], 0
            if fits:
                run.append(stored)
                live_bytes += stored.live_bytes
        return run if self._worth_while(run) else []

    def _worth_while(self, run: list[Stored]) -> bool:
        body_bytes = sum(stored.body_bytes for stored in run)
        live_bytes = sum(stored.live_bytes for stored in run)
        return len(run) >= RUN_ALWAYS or live_bytes * 100 < body_bytes * self._settings.sparse_percent

    def _compacted(self, outcome: CompactSegment | Flaw | None) -> None:
        assert self._compaction is not None
        sources = self._compaction.sources
        self._compaction = None
        if isinstance(outcome, CompactSegment):
            outcome.live_bytes = sum(stored.live_bytes for stored in sources)
            self._catalogue.replace(sources, outcome)
            for stored in sources:
                self._doom(stored)
            self.step()
            return
        if outcome is not None:
            self._emit(FlawFound(outcome))
        # The next one is begun with the next step, not at once: a full disk would be tried without end.
        self._unfit.update(sources)
