"""Cuts the tail of an open log off, and lets the log continue only when the disk has removed it.

In memory the log is shorter at once, and later entries get the indexes that became free; they stay in memory until the
cut is done. One cut at a time.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pandomq.journal.effects import FileName, Lane
from pandomq.journal.hard_state import StateStore
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.segments.appender import Appender
from pandomq.journal.segments.cutting import CutPlan, SegmentRange, keep_aside, shorten
from pandomq.journal.segments.layout import Identity, body_offset
from pandomq.journal.segments.segment import Segment, SegmentList
from pandomq.journal.work import Task, Work, pause


class Truncation:
    __slots__ = ("_appender", "_catalogue", "_identity", "_outbox", "_saved", "_states", "_task")

    def __init__(
        self, outbox: DiskRequests, catalogue: SegmentList, appender: Appender, states: StateStore, identity: Identity
    ) -> None:
        self._outbox = outbox
        self._catalogue = catalogue
        self._appender = appender
        self._states = states
        self._identity = identity
        self._saved = False
        self._task: Task[None] | None = None

    @property
    def active(self) -> bool:
        return self._task is not None

    def wake(self) -> None:
        """The log's last group is durable."""
        if self._task is not None:
            self._task.wake()

    def begin(
        self,
        last: tuple[int, int, int],
        cut: CutPlan | None,
        aside: FileName | None,
        done: Callable[[], None],
    ) -> None:
        """The log ends with this index, term and chain. The catalogue shows what has to be cut, unless the caller knows
        it, as for a damaged log."""
        assert self._task is None
        self._appender.sync()
        last_index, _, chain = last
        if cut is None:
            cut = self._plan(last_index + 1)
            self._forget(last_index + 1, chain)
        self._appender.cut(*last)
        newest = self._catalogue.newest_segment

        def over(_: None) -> None:
            self._task = None
            self._appender.release()
            done()

        self._task = Task(self._outbox, Lane.LOG, self._work(last_index + 1, cut, newest, aside), over)
        self._task.start()

    def _work(self, first_index: int, cut: CutPlan, newest: int, aside: FileName | None) -> Work[None]:
        while not self._appender.idle:
            yield from pause()
        # Everything that stays is synced, and a file that is deleted will not be synced.
        self._appender.flush()
        if aside is not None:
            yield from keep_aside(cut, self._identity, aside, f"the log was cut from entry {first_index} on")
        yield from self._note(first_index, newest)
        yield from shorten(cut)
        yield from self._note(0, newest)

    def _note(self, cut_from: int, segment_newest: int) -> Work[None]:
        def saved() -> None:
            self._saved = True
            self.wake()

        self._saved = False
        state = msgspec.structs.replace(self._states.state, cut_from=cut_from, segment_newest=segment_newest)
        self._states.save(state, saved)
        while not self._saved:
            yield from pause()

    def _plan(self, first_index: int) -> CutPlan:
        """The parts of files that have to be removed from this entry on."""
        shortened: SegmentRange | None = None
        slot_first = slot_end = 0
        deleted: list[SegmentRange] = []
        for segment in self._touched(first_index):
            if segment.first_index < first_index:
                slot_first, slot_end = first_index - segment.first_index, len(segment.positions)
                shortened = SegmentRange(segment.file, segment.positions[slot_first], segment.end)
            else:
                deleted.append(SegmentRange(segment.file, body_offset(segment.slot_count), segment.end))
        return CutPlan(shortened, slot_first, slot_end, deleted)

    def _forget(self, first_index: int, chain: int) -> None:
        """Removes these parts from the catalogue in memory, at once."""
        for segment in self._touched(first_index):
            if segment.first_index >= first_index:
                self._catalogue.remove(segment)
                continue
            count = first_index - segment.first_index
            segment.end = segment.positions[count]
            segment.chain_after = chain
            segment.sealed = True
            del segment.positions[count:]
            if segment.checksums is not None:
                del segment.checksums[count:]

    def _touched(self, first_index: int) -> list[Segment]:
        return [segment for segment in self._catalogue if segment.last_index >= first_index]
