"""Frees disk space: deletes segments that snapshots cover, or puts them aside (`retained`), and deletes snapshots that
newer ones replace.

A segment is deleted only when two snapshots cover it, so that a restart is possible without the newest one; if the disk
is nearly full one snapshot is enough. Pinned entries stay; entries that a broker far behind reads stay as long as there
is free room for twice as many.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pandomq.journal.effects import Delete, Effect, FileName, Lane, SyncDirectory
from pandomq.journal.limits import CATCH_UP_LOG_BYTES_MAX, SNAPSHOTS_KEPT
from pandomq.journal.names import snapshot_file
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.segments.retained import Retained
from pandomq.journal.segments.segment import Segment, SegmentList
from pandomq.journal.space import Space
from pandomq.journal.work import Task, Work, perform

EVERYTHING: Final = 2**63


class Reclaimer:
    __slots__ = (
        "_catalogue",
        "_deleting",
        "_doomed",
        "_doomed_snapshots",
        "_on_gone",
        "_opened_number",
        "_outbox",
        "_overdue",
        "_pin_index",
        "_read",
        "_retained_bytes",
        "_space",
        "_wanted_from",
        "kept_index",
        "ready",
        "retained",
        "snapshots",
    )

    def __init__(
        self,
        outbox: DiskRequests,
        catalogue: SegmentList,
        space: Space,
        opened_number: Callable[[], int],
        on_gone: Callable[[int], None],
        has_peers: bool,
    ) -> None:
        """Calls `on_gone` with the index of a snapshot that was deleted from disk. A broker with peers keeps all
        segments until `pin` reports what they may need."""
        self._outbox = outbox
        self._catalogue = catalogue
        self._space = space
        self._opened_number = opened_number
        self._on_gone = on_gone
        self._pin_index: int | None = None
        self._retained_bytes = EVERYTHING if has_peers else 0
        self._wanted_from = EVERYTHING
        self._doomed: list[Segment] = []
        self._overdue: list[FileName] = []
        self._doomed_snapshots: list[int] = []
        self._read: set[Segment] = set()
        """Files to be deleted once their readers are done."""
        self._deleting = False
        self.kept_index: int | None = None
        """A snapshot that is being sent: it stays, and so does the log after it."""
        self.snapshots: list[int] = []
        """Their indexes, newest first."""
        self.retained: Retained | None = None
        """Receives segments that may be deleted; without it they are deleted."""
        self.ready = False
        """The owner has replayed the log."""

    def pin(self, index: int | None, retained_bytes: int = 0, wanted_from: int | None = None) -> None:
        """Entries from this one on are needed; also the last ones, of this size, if the disk has room for them; and
        those from `wanted_from` on, if it has much."""
        self._pin_index = index
        self._retained_bytes = retained_bytes
        self._wanted_from = EVERYTHING if wanted_from is None else wanted_from

    @property
    def bound(self) -> int:
        """Entries up to this one are in snapshots."""
        needed = 1 if self._space.low else SNAPSHOTS_KEPT
        bound = self.snapshots[needed - 1] if len(self.snapshots) >= needed else 0
        return bound if self.kept_index is None else min(bound, self.kept_index)

    def _may_go(self, segment: Segment) -> bool:
        # The newest segment stays until the next one has entries on disk: the hard state records that.
        if segment.number >= self._opened_number():
            return False
        if self._pin_index is not None and segment.last_index >= self._pin_index:
            return False
        if segment.last_index > self.bound:
            return False
        if self._space.low:
            return True
        kept_bytes = self._retained_bytes
        if segment.last_index >= self._wanted_from:
            kept_bytes = max(kept_bytes, min(CATCH_UP_LOG_BYTES_MAX, self._space.free_bytes))
        return self._catalogue.bytes_after(segment.last_index) >= kept_bytes

    def snapshot_saved(self, index: int) -> None:
        self.snapshots.insert(0, index)
        self.step()

    def tick(self, now_ms: int) -> None:
        if self.retained is not None:
            self.retained.tick(now_ms)
        self.step()

    def step(self) -> None:
        """Deletes everything that may be deleted."""
        if not self.ready:
            return
        for segment in [segment for segment in self._catalogue if self._may_go(segment)]:
            self._catalogue.remove(segment)
            if segment.readers:
                self._read.add(segment)
            else:
                self._doomed.append(segment)
        # Without the log before it an older snapshot is useless.
        for index in self.snapshots[1 if self._space.low else SNAPSHOTS_KEPT :]:
            if index != self.kept_index:
                self.snapshots.remove(index)
                self._doomed_snapshots.append(index)
        self._note_overdue()
        self._delete()

    def free(self, segment: Segment) -> None:
        """The last read of a file has ended."""
        if segment in self._read:
            self._read.discard(segment)
            self._doomed.append(segment)
            self._delete()

    def _delete(self) -> None:
        if (self._doomed or self._doomed_snapshots or self._overdue) and not self._deleting:
            self._deleting = True
            Task(self._outbox, Lane.BULK, self._delete_all(), lambda _: None).start()

    def _delete_all(self) -> Work[None]:
        while self._doomed or self._doomed_snapshots or self._overdue:
            segments, self._doomed = self._doomed, []
            snapshots, self._doomed_snapshots = self._doomed_snapshots, []
            files, self._overdue = self._overdue, []
            effects: list[Effect] = [Delete(file) for file in (*files, *map(snapshot_file, snapshots))]
            effects += map(self._put_away, segments)
            self._note_overdue()
            yield from perform(*effects, SyncDirectory())
            # Files that a snapshot refers to may be deleted only when the snapshot is deleted from disk.
            for index in snapshots:
                self._on_gone(index)
        self._deleting = False

    def _note_overdue(self) -> None:
        if self.retained is not None:
            self._overdue += self.retained.take_overdue()

    def _put_away(self, segment: Segment) -> Effect:
        return Delete(segment.file) if self.retained is None else self.retained.put_away(segment)
