"""The log on disk, without I/O: it takes calls and completions, and returns requests and events.

    journal = Journal(settings, …); journal.open()
    disk.submit(journal.take_requests())              after every call or batch of calls
    journal.completed(completion)                     for every completion
    for event in journal.take_events(): …             after either

Until `Recovered` the owner gets the snapshot's pieces and the entries after it, and adopts the pages that the snapshot
refers to; then it calls `replayed`. From then on it appends and syncs, and `Durable` reports how far the log is safe.
A write or sync that fails is final: `completed` raises StoreFault, as does every call after it, and no more requests
are emitted. Entries that were not durable by then must not be confirmed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import msgspec

from pandomq.hard_state import HardState
from pandomq.ids import ClusterId, LogIndex, NodeName, Term
from pandomq.journal.checksums import CHAIN_START
from pandomq.journal.effects import Completion, FileName, Lane, Request, Ticket
from pandomq.journal.events import Event, HardStateSaved, LogCorruption, Recovered, Truncated
from pandomq.journal.faults import StoreFault
from pandomq.journal.hard_state import StateStore, StoreState
from pandomq.journal.limits import JournalSettings
from pandomq.journal.names import aside_file
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.paging.page_file import StoredPage
from pandomq.journal.paging.page_sweeper import PageSweeper
from pandomq.journal.paging.pages import Pages
from pandomq.journal.recovery.closing import Closing
from pandomq.journal.recovery.file_scan import Expected
from pandomq.journal.recovery.recovery import Opened, settle
from pandomq.journal.recovery.store_scan import StoreScan
from pandomq.journal.recovery.unreadable import set_unreadable_aside
from pandomq.journal.segments.appender import Appender
from pandomq.journal.segments.layout import Identity
from pandomq.journal.segments.reading import SegmentReader
from pandomq.journal.segments.reclaimer import Reclaimer
from pandomq.journal.segments.retained import Retained
from pandomq.journal.segments.spares import Spares
from pandomq.journal.segments.truncation import Truncation
from pandomq.journal.snapshots.replacement import Arrivals, finish_replacement
from pandomq.journal.snapshots.snapshot_sender import SnapshotSender
from pandomq.journal.snapshots.snapshot_writer import SnapshotWriter
from pandomq.journal.snapshots.snapshots import SnapshotStore
from pandomq.journal.space import Space
from pandomq.journal.store_identity import StoreIdentity
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
        """A new store gets `cluster_id`, or `new_cluster_id` if that is empty; an existing one must have `cluster_id`,
        unless that is empty, and the node's name. Without any id a new store has no log yet (`store_identity`)."""
        self._settings = settings
        self._boot_id, self._has_peers = boot_id, has_peers
        self._new_state = StoreState(cluster_id or new_cluster_id, node_name, store_id=new_store_id)
        self._outbox = DiskRequests()
        self._events: list[Event] = []
        self._fault: StoreFault | None = None
        self._store_scan = StoreScan(settings, Expected(cluster_id, node_name), self._events.append)
        self._catalogue = self._store_scan.catalogue
        self._space = Space(settings, self._outbox, self._events.append)
        self.pages = Pages(settings, self._outbox, self._space, self._events.append)
        self._sweeper = PageSweeper(self._outbox, self.pages, self._events.append)
        self._damage: LogCorruption | None = None
        self._commit_index = self._settled_index = 0
        self._is_open = False
        self._identity: Identity
        self._numbers: Iterator[int]
        self._appender: Appender
        self._states: StateStore
        self._reading: SegmentReader
        self._reclaimer: Reclaimer
        self.snapshots: SnapshotStore
        self._truncation: Truncation
        self._closing: Closing
        self.sender: SnapshotSender
        self.arrivals: Arrivals
        self.store_identity: StoreIdentity

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
        """To be called about ten times a second."""
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
            yield from set_unreadable_aside(self._store_scan.flaws)
        yield from self._store_scan.run(self._surveyed)
        return (yield from settle(self._store_scan, self._settings, self._new_state, self._boot_id))

    def _surveyed(self, identity: Identity) -> None:
        file_scan = self._store_scan.file_scan
        self._numbers = itertools.count(file_scan.number_last + 1)
        self.pages.begin(identity, self._numbers, self._store_scan.page_scan.held, file_scan.sizes)

    def _opened(self, opened: Opened) -> None:
        store_scan, settings, outbox, emit = self._store_scan, self._settings, self._outbox, self._events.append
        file_scan, end, terms = store_scan.file_scan, store_scan.end, store_scan.terms
        if file_scan.fresh:
            self._surveyed(opened.identity)
        self._identity = identity = opened.identity
        self._space.reserve_held = file_scan.reserve_held
        self._space.measure()
        spares = Spares(settings, identity, outbox, self._space, self._numbers)
        self._appender = appender = Appender(
            settings, identity, outbox, self._catalogue, terms, store_scan.points, spares, emit
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
        self._reclaimer.retained = Retained(settings, self._space, file_scan.sizes)
        self._reclaimer.snapshots = [head.last_index for head in file_scan.snapshots]
        self._reading = SegmentReader(outbox, self._catalogue, appender, emit, self._reclaimer.free)
        self.pages.on_written = self._pages_written
        self._truncation = Truncation(outbox, self._catalogue, appender, self._states, identity)
        self._closing = Closing(appender, self._truncation, self._states, outbox, emit)
        self.sender = SnapshotSender(settings, identity, outbox, self._reclaimer, emit)
        self.arrivals = Arrivals(settings, identity, outbox, self._states, self._catalogue, self._reclaimer, emit)
        self.store_identity = StoreIdentity(self._states, outbox, emit)
        self.snapshots = SnapshotStore(
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
            last_bytes=0 if store_scan.snapshot is None else file_scan.sizes[store_scan.snapshot.file],
            log_bytes=0 if end is None else end.size_bytes,
        )
        self._damage = None if end is None else end.damage
        self._is_open = True
        emit(
            Recovered(
                identity,
                opened.state.hard,
                LogIndex(store_scan.snapshot_index),
                self.first_index,
                self.last_index,
                self.last_term,
                None if end is None else end.torn_tail(),
                self._damage,
                tuple(file_scan.flaws),
            )
        )

    @property
    def found_state(self) -> StoreState | None:
        """The state of the store when it was opened, available before the first event; None for a new one."""
        return self._store_scan.file_scan.state

    def replayed(self) -> None:
        """The owner has its state, and has adopted the pages it wants."""
        self._check()
        self._reclaimer.ready = True
        self._reclaimer.step()
        self.pages.replayed()

    def close(self) -> None:
        """Syncs everything; `Closed` is the last event. Later entries are lost."""
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
        """Every entry from here on can be read."""
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
        """The last entry that is synced to disk, whatever the fsync policy."""
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
        """The time since when a sync is due and the disk makes no progress; this shows a stalled disk."""
        return self._appender.waiting_since_ms

    def append(self, term: Term, payload: bytes) -> LogIndex:
        return self.extend(term, (payload,))

    def extend(self, term: Term, payloads: Sequence[bytes]) -> LogIndex:
        """Several entries at once; returns the index of the last."""
        self._check()
        assert self._damage is None, "a damaged log must be truncated first"
        return self._appender.extend(term, payloads)

    def sync(self) -> None:
        """The end of a batch: requests that the appended entries be made durable."""
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
        """None for reclaimed entries."""
        if index == 0:
            return Term(0)
        term = self._store_scan.terms.at(index)
        return None if term is None or index > self._appender.last_index else Term(term)

    def chain_at(self, index: LogIndex) -> int | None:
        """The chained hash up to this entry; for reclaimed entries only at regular points."""
        if index == self._appender.last_index:
            return self._appender.chain
        chain = self._catalogue.chain_at(index)
        return chain if chain is not None else self._store_scan.points.at(index)

    def bytes_after(self, index: LogIndex) -> int:
        return self._catalogue.bytes_after(index)

    def read(self, first_index: LogIndex, bytes_max: int) -> Ticket:
        """Reads entries from here on, as many as are stored together and fit; `EntriesRead` contains at least one.
        Raises LookupError for an entry that is not held."""
        self._check()
        return self._reading.entries(first_index, bytes_max)

    def truncate(self, first_index: LogIndex, *, keep_aside: bool) -> Ticket:
        """Ends the log before this entry; `Truncated` reports that it is on disk. Only one may be under way."""
        self._check()
        assert self._commit_index < first_index, "what is committed stays"
        ticket = self._outbox.next_ticket()
        last_index = LogIndex(first_index - 1)
        chain, term = self.chain_at(last_index), self.term_at(last_index)
        assert chain is not None and term is not None
        cut = None
        if self._damage is not None:
            end = self._store_scan.end
            assert end is not None and first_index == self._damage.index
            cut = end.cut
            # Entries that are appended from now on wait until the old entries are removed from disk.
            self._damage = None
        aside = aside_file(first_index, next(self._numbers)) if keep_aside else None
        self._truncation.begin((last_index, term, chain), cut, aside, lambda: self._truncated(ticket, aside))
        self._store_scan.terms.cut(last_index)
        self._store_scan.points.cut(last_index)
        return ticket

    def _truncated(self, ticket: Ticket, aside: FileName | None) -> None:
        self._events.append(Truncated(ticket, aside))
        self._log_idle()

    # The hard state.

    def save_state(self, hard_state: HardState) -> Ticket:
        self._check()
        ticket = self._outbox.next_ticket()
        state = msgspec.structs.replace(self._states.state, hard=hard_state, doubtful=False)
        self._states.save(state, lambda: self._events.append(HardStateSaved(ticket)))
        return ticket

    # Snapshots and reclaiming.

    @property
    def snapshot_due(self) -> bool:
        return self.snapshots.due

    def begin_snapshot(self, index: LogIndex, pages: Sequence[StoredPage] = ()) -> SnapshotWriter:
        """Begins a snapshot of the owner's state after this entry, which must be readable with `read`, or the last one.
        The pieces may refer to these pages, by their current places."""
        self._check()
        chain, term = self.chain_at(index), self.term_at(index)
        assert chain is not None and term is not None
        return self.snapshots.begin(index, term, chain, self._store_scan.points, pages)

    def pin(self, first_index: LogIndex | None, retained_bytes: int = 0, wanted_from: LogIndex | None = None) -> None:
        """Keeps entries from `first_index` on, and this many bytes of the end of the log; also those from `wanted_from`
        on, unless they are too many."""
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
