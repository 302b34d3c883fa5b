"""The log on disk, without a disk: calls and completions go in, requests and events come out.

    journal = Journal(settings, …); journal.open()
    disk.submit(journal.take_requests())              after every call or batch of calls
    journal.completed(completion)                     for every completion
    for event in journal.take_events(): …             after either

Until `Recovered` the owner gets the snapshot's pieces and the entries after it, and adopts the pages that the snapshot
refers to; then it says `replayed`. From then on it appends and syncs, and `Durable` tells how far the log is safe.

A write or sync that fails is final: `completed` raises StoreFault, as does every call after it, and no more requests
come out. Nothing that was not durable by then may be confirmed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from pandomq.ids import ClusterId, LogIndex, NodeName, Term
from pandomq.journal.appender import Appender
from pandomq.journal.charter import Charter
from pandomq.journal.checksums import CHAIN_START
from pandomq.journal.closing import Closing
from pandomq.journal.effects import Completion, FileName, Lane, Request, Ticket
from pandomq.journal.events import Damage, Event, Recovered, StateSaved, Truncated
from pandomq.journal.examination import Examination
from pandomq.journal.faults import StoreFault
from pandomq.journal.hard_state import HardState, StateStore, StoreState
from pandomq.journal.layout import Identity
from pandomq.journal.limits import JournalSettings
from pandomq.journal.names import aside_file
from pandomq.journal.outbox import Outbox
from pandomq.journal.page_file import StoredPage
from pandomq.journal.page_sweeper import PageSweeper
from pandomq.journal.pages import Pages
from pandomq.journal.reading import Reading
from pandomq.journal.reclaimer import Reclaimer
from pandomq.journal.recovery import Opened, settle
from pandomq.journal.replacement import Arrivals, finish_replacement
from pandomq.journal.retained import Retained
from pandomq.journal.snapshot_sender import SnapshotSender
from pandomq.journal.snapshot_writer import SnapshotWriter
from pandomq.journal.snapshots import Snapshots
from pandomq.journal.space import Space
from pandomq.journal.spares import Spares
from pandomq.journal.survey import Expected
from pandomq.journal.truncation import Truncation
from pandomq.journal.unreadable import set_unreadable_aside
from pandomq.journal.view import JournalView
from pandomq.journal.work import Task, Work


class Journal:
    def __init__(
        self,
        settings: JournalSettings,
        *,
        node_name: NodeName,
        new_cluster_id: ClusterId,
        cluster_id: ClusterId | None = None,
        new_store_id: str = "",
        boot_id: str = "",
        has_peers: bool = False,
    ) -> None:
        """A new store gets `cluster_id`, or `new_cluster_id` if that is not known; one that is there must have
        `cluster_id`, if that is known, and the node's name. If the id is empty it has no log yet (`charter`)."""
        self._settings = settings
        self._boot_id, self._has_peers = boot_id, has_peers
        self._new_state = StoreState(cluster_id or new_cluster_id, node_name, store_id=new_store_id)
        self._outbox = Outbox()
        self._events: list[Event] = []
        self._fault: StoreFault | None = None
        self._examination = Examination(settings, Expected(cluster_id, node_name), self._events.append)
        self._catalogue = self._examination.catalogue
        self._space = Space(settings, self._outbox, self._events.append)
        self.pages = Pages(settings, self._outbox, self._space, self._events.append)
        self._sweeper = PageSweeper(self._outbox, self.pages, self._events.append)
        self._damage: Damage | None = None
        self._commit_index = self._settled_index = 0
        self._is_open = False
        self._identity: Identity
        self._numbers: Iterator[int]
        self._appender: Appender
        self._states: StateStore
        self._reading: Reading
        self._reclaimer: Reclaimer
        self.snapshots: Snapshots
        self._truncation: Truncation
        self._closing: Closing
        self.sender: SnapshotSender
        self.arrivals: Arrivals
        self.charter: Charter

    # Requests, completions, events.

    def open(self) -> None:
        Task(self._outbox, Lane.LOG, self._recover(), self._opened).start()

    def take_requests(self) -> list[Request]:
        requests = self._outbox.take()
        return requests if self._fault is None else []

    def completed(self, completion: Completion) -> None:
        self._check()
        try:
            self._outbox.completed(completion)
        except StoreFault as fault:
            self._fault = fault
            raise

    def take_events(self) -> list[Event]:
        events = self._events[:]
        self._events.clear()
        return events

    def note_time(self, now_ms: int) -> None:
        """For `waiting_since_ms`; cheaper than a tick."""
        if self._is_open:
            self._appender.now_ms = now_ms

    def tick(self, now_ms: int) -> None:
        """To be told some ten times a second."""
        self._check()
        if not self._is_open:
            return
        self._appender.tick(now_ms)
        self.sender.tick(now_ms)
        self._sweeper.written()
        if self._space.tick(now_ms):
            self.pages.tick()
            self._sweeper.step()
            self._reclaimer.tick(now_ms)

    def _check(self) -> None:
        if self._fault is not None:
            raise self._fault

    # Opening.

    def _recover(self) -> Work[Opened]:
        yield from finish_replacement(retain=self._settings.retain_bytes > 0)
        if self._has_peers:
            yield from set_unreadable_aside(self._examination.flaws)
        yield from self._examination.run(self._surveyed)
        return (yield from settle(self._examination, self._settings, self._new_state, self._boot_id))

    def _surveyed(self, identity: Identity) -> None:
        survey = self._examination.survey
        self._numbers = itertools.count(survey.number_last + 1)
        self.pages.begin(identity, self._numbers, self._examination.page_survey.held, survey.sizes)

    def _opened(self, opened: Opened) -> None:
        examination, settings, outbox, emit = self._examination, self._settings, self._outbox, self._events.append
        survey, end, terms = examination.survey, examination.end, examination.terms
        if survey.fresh:
            self._surveyed(opened.identity)
        self._identity = identity = opened.identity
        self._space.reserve_held = survey.reserve_held
        self._space.measure()
        spares = Spares(settings, identity, outbox, self._space, self._numbers)
        self._appender = appender = Appender(
            settings, identity, outbox, self._catalogue, terms, examination.points, spares, emit
        )
        last_index, chain = (0, CHAIN_START) if end is None else (end.last_index, end.chain)
        appender.begin(last_index, terms.last, chain, opened.open_segment)
        appender.on_opened = self._segment_opened
        appender.on_idle = self._log_idle
        appender.on_synced = self._settle
        self._states = StateStore(outbox, opened.state, opened.counter)
        self._reclaimer = Reclaimer(
            outbox, self._catalogue, self._space, lambda: appender.opened_number, self.pages.release, self._has_peers
        )
        self._reclaimer.retained = Retained(settings, self._space, survey.sizes)
        self._reclaimer.snapshots = [head.last_index for head in survey.snapshots]
        self._reading = Reading(outbox, self._catalogue, appender, emit, self._reclaimer.free)
        self.pages.on_written = self._pages_written
        self._truncation = Truncation(outbox, self._catalogue, appender, self._states, identity)
        self._closing = Closing(appender, self._truncation, self._states, outbox, emit)
        self.sender = SnapshotSender(settings, identity, outbox, self._reclaimer, emit)
        self.arrivals = Arrivals(settings, identity, outbox, self._states, self._catalogue, self._reclaimer, emit)
        self.charter = Charter(self._states, outbox, emit)
        self.snapshots = Snapshots(
            settings,
            identity,
            outbox,
            self._space,
            self._reclaimer,
            self.pages,
            emit,
            appender.flush,
            lambda: self._settled_index,
            lambda: appender.appended_bytes,
            last_bytes=0 if examination.snapshot is None else survey.sizes[examination.snapshot.file],
            log_bytes=0 if end is None else end.size_bytes,
        )
        self._damage = None if end is None else end.damage
        self._is_open = True
        emit(
            Recovered(
                identity,
                opened.state.hard,
                LogIndex(examination.snapshot_index),
                self.first_index,
                self.last_index,
                self.last_term,
                None if end is None else end.torn_tail(),
                self._damage,
                tuple(survey.flaws),
            )
        )

    @property
    def found_state(self) -> StoreState | None:
        """As the store was opened, known as soon as anything comes out of it; None of a new one."""
        return self._examination.survey.state

    def replayed(self) -> None:
        """The owner has its state, and has adopted the pages it wants."""
        self._check()
        self._reclaimer.ready = True
        self._reclaimer.step()
        self.pages.replayed()

    def close(self) -> None:
        """Syncs what there is; `Closed` is the last event. What is appended afterwards is lost."""
        self._check()
        self._closing.begin()

    def _segment_opened(self, number: int) -> None:
        self._states.save(msgspec.structs.replace(self._states.state, segment_newest=number))

    def _log_idle(self) -> None:
        self._truncation.wake()
        self._closing.wake()

    # The log.

    @property
    def first_index(self) -> LogIndex:
        """From here on every entry can be read."""
        return LogIndex(self._catalogue.whole_from(self._appender.last_index))

    @property
    def last_index(self) -> LogIndex:
        return LogIndex(self._appender.last_index)

    @property
    def last_term(self) -> Term:
        return Term(self._appender.last_term)

    @property
    def durable_index(self) -> LogIndex:
        return LogIndex(self._appender.durable_index)

    @property
    def synced_index(self) -> LogIndex:
        """Really on the disk, whatever the fsync policy."""
        return LogIndex(self._appender.synced_index)

    @property
    def commit_index(self) -> LogIndex:
        return LogIndex(self._commit_index)

    @property
    def pending_bytes(self) -> int:
        """Handed over for a sync, and not yet durable: grows while the disk is slower than the owner."""
        return self._appender.pending_bytes

    @property
    def waiting_since_ms(self) -> int | None:
        """Since when the disk owes a sync and does not move; a disk that stalls shows here."""
        return self._appender.waiting_since_ms

    def append(self, term: Term, payload: bytes) -> LogIndex:
        return self.extend(term, (payload,))

    def extend(self, term: Term, payloads: Sequence[bytes]) -> LogIndex:
        """Several entries at once; returns the index of the last."""
        self._check()
        assert self._damage is None, "a damaged log must be truncated first"
        return self._appender.extend(term, payloads)

    def sync(self) -> None:
        """The end of a batch: what was appended is to be made durable."""
        self._check()
        self._appender.sync()

    def commit(self, index: LogIndex) -> None:
        """Entries up to this one will never be truncated."""
        self._check()
        assert index <= self._appender.last_index
        if index > self._commit_index:
            self._commit_index = index
            self._settle()

    def _settle(self) -> None:
        index = min(self._commit_index, self._appender.synced_index)
        if index > self._settled_index:
            self._settled_index = index
            self.snapshots.settled()

    def _pages_written(self) -> None:
        self.snapshots.settled()
        self._sweeper.written()

    def term_at(self, index: LogIndex) -> Term | None:
        """None for entries that are long reclaimed."""
        if index == 0:
            return Term(0)
        term = self._examination.terms.at(index)
        return None if term is None or index > self._appender.last_index else Term(term)

    def chain_at(self, index: LogIndex) -> int | None:
        """The chained hash up to this entry; of reclaimed ones only at regular points."""
        if index == self._appender.last_index:
            return self._appender.chain
        segment = self._catalogue.find(index)
        chain = None if segment is None else segment.chain_at(index)
        return chain if chain is not None else self._examination.points.at(index)

    def bytes_after(self, index: LogIndex) -> int:
        return self._catalogue.bytes_after(index)

    def read(self, first_index: LogIndex, bytes_max: int) -> Ticket:
        """Entries from here on, as many as are stored together and fit; `EntriesRead` brings at least one. Raises
        LookupError for one that is not held."""
        self._check()
        return self._reading.entries(first_index, bytes_max)

    def truncate(self, first_index: LogIndex, *, keep_aside: bool) -> Ticket:
        """The log ends before this entry from now on; `Truncated` tells when the disk knows. One at a time."""
        self._check()
        assert self._commit_index < first_index, "what is committed stays"
        ticket = self._outbox.next_ticket()
        last_index = LogIndex(first_index - 1)
        chain, term = self.chain_at(last_index), self.term_at(last_index)
        assert chain is not None and term is not None
        cut = None
        if self._damage is not None:
            end = self._examination.end
            assert end is not None and first_index == self._damage.index
            cut = end.cut
            # What is appended from now on waits until the disk has forgotten the old entries.
            self._damage = None
        aside = aside_file(first_index, next(self._numbers)) if keep_aside else None
        self._truncation.begin((last_index, term, chain), cut, aside, lambda: self._truncated(ticket, aside))
        self._examination.terms.cut(last_index)
        self._examination.points.cut(last_index)
        return ticket

    def _truncated(self, ticket: Ticket, aside: FileName | None) -> None:
        self._events.append(Truncated(ticket, aside))
        self._log_idle()

    # The hard state.

    def save_state(self, hard_state: HardState) -> Ticket:
        self._check()
        ticket = self._outbox.next_ticket()
        state = msgspec.structs.replace(self._states.state, hard=hard_state, doubtful=False)
        self._states.save(state, lambda: self._events.append(StateSaved(ticket)))
        return ticket

    # Snapshots and reclaiming.

    @property
    def snapshot_due(self) -> bool:
        return self.snapshots.due

    def begin_snapshot(self, index: LogIndex, pages: Sequence[StoredPage] = ()) -> SnapshotWriter:
        """The owner's state after this entry, which must be one that `read` could give, or the last. The pieces may
        refer to these pages, by the places they have now."""
        self._check()
        chain, term = self.chain_at(index), self.term_at(index)
        assert chain is not None and term is not None
        return self.snapshots.begin(index, term, chain, self._examination.points, pages)

    def pin(self, first_index: LogIndex | None, retained_bytes: int = 0, wanted_from: LogIndex | None = None) -> None:
        """Entries from here on, and so much of the end, stay; those from `wanted_from` on, unless they are too many."""
        self._reclaimer.pin(first_index, retained_bytes, wanted_from)

    def view(self) -> JournalView:
        return JournalView(
            first_index=self.first_index,
            last_index=self.last_index,
            durable_index=self.durable_index,
            commit_index=self.commit_index,
            snapshot_index=max(self._reclaimer.snapshots, default=0),
            file_count=len(self._catalogue),
            size_bytes=sum(stored.size_bytes for stored in self._catalogue),
            page_file_count=self.pages.file_count,
            page_file_bytes=self.pages.size_bytes,
            page_bytes=self.pages.live_bytes,
            pending_bytes=self.pending_bytes,
            free_bytes=self._space.free_bytes,
            space_low=self._space.low,
        )
