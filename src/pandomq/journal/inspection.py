"""Looks into a store without changing it, and reports what it found: for tools.

Used like a journal: `open`, then requests, completions and events until `over`. Deep, it reads everything; otherwise
what a restart would read.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from pandomq.ids import ClusterId, NodeName
from pandomq.journal.effects import Completion, FileName, Lane, Request
from pandomq.journal.events import Damage, Event, Flaw, Progress, TornTail
from pandomq.journal.examination import Examination
from pandomq.journal.faults import StoreFault
from pandomq.journal.layout import Identity
from pandomq.journal.limits import JournalSettings
from pandomq.journal.names import aside_number
from pandomq.journal.outbox import Outbox
from pandomq.journal.page_file import Place
from pandomq.journal.page_repair import Prune, forget_pages
from pandomq.journal.segment import Segment
from pandomq.journal.survey import Expected
from pandomq.journal.work import Task


class FileReport(msgspec.Struct, frozen=True):
    file: str
    size_bytes: int
    first_index: int
    last_index: int


class StoreReport(msgspec.Struct, frozen=True):
    fault: str = ""
    """Why the store cannot be opened at all; then the rest is what was known until then."""
    new: bool = False
    """There is nothing in it."""
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
    """Of the last entry that is known to have existed, also if it is damaged."""
    known_term: int = 0
    snapshots: tuple[int, ...] = ()
    """Their indexes, newest first."""
    files: tuple[FileReport, ...] = ()
    aside: tuple[str, ...] = ()
    """Files with what was cut off."""
    size_bytes: int = 0
    torn: TornTail | None = None
    damage: Damage | None = None
    flaws: tuple[Flaw, ...] = ()
    damaged_pages: tuple[Place, ...] = ()
    """Their messages are lost; `forget_pages` lets the store go on without them."""

    @property
    def rank(self) -> tuple[int, int, int]:
        """Of two stores of one cluster the higher one is newer."""
        return self.epoch, self.known_term, self.known_index

    @property
    def sound(self) -> bool:
        """Nothing is wrong with it. A torn tail is not wrong: nobody was told of what it held."""
        return not self.fault and self.damage is None and not self.flaws


class Inspection:
    def __init__(self, *, deep: bool, settings: JournalSettings | None = None) -> None:
        self._outbox = Outbox()
        self._events: list[Event] = []
        self._examination = Examination(settings or JournalSettings(), Expected(None, None), self._hear, deep=deep)
        self._fault: StoreFault | None = None
        self.over = False

    def open(self) -> None:
        Task(self._outbox, Lane.READ, self._examination.run(), self._finished).start()

    def forget_pages(self, prune: Prune, forgotten: Callable[[FileName], None]) -> None:
        """After a deep look: see `page_repair`; tells where their bytes are kept. The caller has the store locked."""
        survey, state = self._examination.survey, self._examination.survey.state
        assert self.over and state is not None
        snapshots = [(head, survey.sizes[head.file]) for head in survey.snapshots]
        damaged = frozenset(self._examination.page_survey.damaged)
        identity = Identity(ClusterId(state.cluster_id), NodeName(state.node_name))
        self.over = False

        def finish(aside: FileName) -> None:
            self.over = True
            forgotten(aside)

        work = forget_pages(snapshots, damaged, identity, survey.number_last + 1, prune)
        Task(self._outbox, Lane.BULK, work, finish).start()

    def take_requests(self) -> list[Request]:
        return self._outbox.take()

    def completed(self, completion: Completion) -> None:
        try:
            self._outbox.completed(completion)
        except StoreFault as fault:
            self._fault = fault
            self.over = True

    def take_progress(self) -> list[Progress]:
        events = [event for event in self._events if isinstance(event, Progress)]
        self._events.clear()
        return events

    def report(self) -> StoreReport:
        examination = self._examination
        survey, end, state = examination.survey, examination.end, examination.survey.state
        report = StoreReport(
            fault="" if self._fault is None else str(self._fault),
            new=state is None and self._fault is None,
            snapshots=tuple(head.last_index for head in survey.snapshots),
            files=tuple(map(_describe, examination.catalogue)),
            aside=tuple(file for file in survey.sizes if aside_number(file) is not None),
            size_bytes=sum(survey.sizes.values()),
            flaws=tuple(survey.flaws),
            damaged_pages=tuple(examination.page_survey.damaged),
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
            last_index, last_term = end.last_index, examination.terms.last
            report = msgspec.structs.replace(
                report,
                first_index=examination.catalogue.whole_from(last_index),
                last_index=last_index,
                last_term=last_term,
                known_index=last_index if end.damage is None else end.damage.known_index,
                known_term=last_term if end.damage is None else end.damage.known_term,
                torn=end.torn_tail(),
                damage=end.damage,
            )
        return report

    def _hear(self, event: Event) -> None:
        # What the log holds is not looked at, and must not pile up.
        if isinstance(event, Progress):
            self._events.append(event)

    def _finished(self, _: None) -> None:
        self.over = True


def _describe(segment: Segment) -> FileReport:
    return FileReport(segment.file, segment.size_bytes, segment.first_index, segment.last_index)
