"""The log on disk, as the node sees it: the journal and its use.

    opening    the snapshot goes to the broker, and so do the entries after it that are committed (`opening`)
    open       `replication` determines where entries come from, and when they are committed; snapshots are taken
               (`snapshots`), and messages come and go between memory and disk (`paging`)
    closing    a last snapshot, exact if nobody else serves; then everything is synced

`completed` takes the results of the journal's requests, and raises StoreFault when the store
cannot be used, or not any more. Nothing may be confirmed after that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, assert_never

from pandomq.broker.log.revival import Revival
from pandomq.ids import LogIndex
from pandomq.journal.effects import Completion
from pandomq.journal.events import (
    Closed,
    Durable,
    Emptied,
    EntriesRead,
    Event,
    FlawFound,
    HardStateSaved,
    Installed,
    InstallFailed,
    PageFetched,
    PartRead,
    PartTaken,
    Recovered,
    RecoveryProgress,
    Replayed,
    RestoredPiece,
    SnapshotBegins,
    SnapshotFailed,
    SnapshotSaved,
    SpaceBack,
    SpaceLow,
    Truncated,
)
from pandomq.journal.faults import StoreFault
from pandomq.kernel import NEVER_MS
from pandomq.limits import MIB
from pandomq.node.broker_state import BrokerLife, BrokerState
from pandomq.node.log.applier import Applier
from pandomq.node.log.chunk_pages import ChunkPages
from pandomq.node.log.cluster_time import ClusterTime
from pandomq.node.log.configuration_source import ConfigurationSource
from pandomq.node.log.foundation import Foundation
from pandomq.node.log.full_disk import FullDisk
from pandomq.node.log.log import LOW_ON_DISK
from pandomq.node.log.opening import Opening
from pandomq.node.log.pacing import Pacing
from pandomq.node.log.paging import Paging
from pandomq.node.log.replication import Replication
from pandomq.node.log.snapshots import Snapshots
from pandomq.node.views.cluster_view import LEARNER, members_of
from pandomq.node.views.records import ClusterFacts

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.broker import Broker
    from pandomq.journal.journal import Journal
    from pandomq.node.settings import NodeSettings

log = logging.getLogger("pandomq")

BEHIND_BYTES_MAX: Final = 64 * MIB
"""The part of the log in memory that the disk has not written yet."""
TICK_MS_MIN: Final = 5
"""Without a reason the replica gets the time no more often than this."""
BEGINNING_TICK_MS: Final = 20
DAMAGED_PAGE: Final = "store file %s is damaged at offset %d: %s; stop this broker and run `pandomq store verify`"


class DiskLog:
    def __init__(
        self, journal: Journal, broker: Broker, settings: NodeSettings, random: Random, life: BrokerLife
    ) -> None:
        self._life = life
        self.journal = journal
        self.broker = broker
        """The broker whose state is the log's."""
        self.paging = Paging(broker.engine, journal.pages)
        self.paging.set_limit(settings.paging_bytes)
        self._chunks = broker.state.chunk_cache.store = ChunkPages(journal.pages)
        self.revival = Revival(broker, self.paging.adopt)
        self.time = ClusterTime(broker, self.revival, journal)
        self.applier = Applier(journal, self.revival, self.time)
        self.replication = Replication(settings, journal, broker, self.applier, random, life)
        self.replication.seal_removals = self.seal_removals
        self._log = self.replication.log
        self._configuration = ConfigurationSource(settings.name, journal, broker)
        self._log.transfer.configuration = self._configuration
        self.foundation = Foundation(settings.name, settings.cluster, journal, random)
        self.opening = Opening(
            journal, broker, self.paging, self.revival, self.applier, self.replication, self.foundation
        )
        self.snapshots = Snapshots(journal, broker, self.paging, self.applier, self.replication)
        self._name = settings.name
        self._now_ms = 0
        self.closed = False
        self._full_disk = FullDisk(self.replication)
        self._behind = False
        self._pacing = Pacing()
        self.appended_bytes = 0
        journal.open()

    # The log.

    @property
    def last_index(self) -> LogIndex:
        return self.journal.last_index if self._life.store_is_read else LogIndex(0)

    def append(self, entry: bytes, *, prompt: bool = False) -> LogIndex:
        self.appended_bytes += len(entry)
        self.time.wrote()
        self._behind = self._behind or self.journal.pending_bytes > BEHIND_BYTES_MAX
        return self._log.propose(entry, prompt=prompt)

    def seal_removals(self) -> None:
        """The log gets the records of removed messages that wait for a later entry."""
        entry = self.broker.deferral.end()
        if entry is not None:
            self.broker.sealed(self.append(entry))

    def tick(self, now_ms: int, monotonic_ms: int) -> None:
        self._now_ms = self.replication.knowledge.now_ms = now_ms
        if self._life.store_is_read and not self.closed:
            self.journal.tick(monotonic_ms)
            self.foundation.tick(monotonic_ms)
            self._full_disk.tick(monotonic_ms)
            replication = self.replication
            self._keep_log()
            if replication.life.took_over and replication.has_peers:
                replication.knowledge.watch(replication.replica.view().peers, replication.linked)
                self._say_time(now_ms)

    def _keep_log(self) -> None:
        """Keeps the log that other brokers may still need."""
        replication, replica = self.replication, self.replication.replica
        lagging_peers = replica.lagging_peers if replication.life.took_over else []
        needed_from = replica.needed_from if replication.life.took_over else None
        wanted_from = min((peer.first_index for peer in lagging_peers), default=None)
        retained_bytes = self._state_bytes if replication.has_peers and self._is_missed() else 0
        self.journal.pin(needed_from, retained_bytes, wanted_from)
        if self._pacing.is_due:
            last = min((one for one in lagging_peers if one.reads_log), key=lambda one: one.first_index, default=None)
            behind_bytes = None if last is None else self.journal.bytes_after(LogIndex(last.first_index - 1))
            self._pacing.look(behind_bytes, "" if last is None else last.name)

    def _is_missed(self) -> bool:
        """A member that is down, or behind, will need the log from its last index. The log is kept for it as long as it
        is less than the whole state would be."""
        replication = self.replication
        in_sync = replication.linked
        if replication.life.took_over:
            in_sync = {peer.name for peer in replication.replica.view().peers if peer.in_sync}
        return bool(replication.knowledge.membership.names - in_sync - {self._name})

    @property
    def _state_bytes(self) -> int:
        return self.journal.snapshots.last_bytes + self.journal.pages.live_bytes

    def _say_time(self, now_ms: int) -> None:
        entry = self.time.due_entry(now_ms)
        if entry is not None and self.replication.serving:
            self.append(entry)

    def note_time(self, now_ms: int, monotonic_ms: int) -> None:
        """To be called before anything else of that time."""
        self.time.note_time(now_ms, monotonic_ms)
        self._pacing.note_time(monotonic_ms)
        self.time.exchange(self.replication, has_news=self.applier.has_news)
        self.replication.tick(monotonic_ms)

    @property
    def next_deadline_ms(self) -> int:
        """The time at which the replica needs a tick: when it requests one, and periodically in any case."""
        replication = self.replication
        if not replication.has_peers:
            return NEVER_MS
        if not self._life.runs_replica:
            # The replica has no time yet, and its deadline would be overdue. Other brokers are dialed with a tick.
            return self._now_ms + min(replication.tick_ms, BEGINNING_TICK_MS)
        wanted_ms = replication.replica.next_tick_ms - self.time.monotonic_ms
        if (wait_ms := self._pacing.wait_ms) is not None:
            wanted_ms = min(wanted_ms, wait_ms)
        return self._now_ms + min(replication.tick_ms, max(TICK_MS_MIN, wanted_ms))

    @property
    def holds_back(self) -> str | None:
        """Why publishers are to wait: the disk is nearly full or far behind, or nothing they publish is committed."""
        if self._full_disk.low or self._behind or self.paging.behind or self._chunks.behind:
            return LOW_ON_DISK
        waits = self.replication.life.took_over and self.replication.replica.holds_back
        return "waiting for backups" if waits else None

    @property
    def rests(self) -> bool:
        return self.replication.life.took_over and self._pacing.resting

    @property
    def alarms(self) -> tuple[str, ...]:
        return tuple(kind.value for kind in self.replication.knowledge.alarms)

    def inherit(self, older: DiskLog) -> None:
        self.replication.knowledge.elections = older.replication.knowledge.elections
        self.time.last_ahead_ms = older.time.last_ahead_ms

    def cluster(self, name: str, address: str) -> ClusterFacts:
        """The knowledge of this log, on the broker of this name and address."""
        knowledge = self.replication.knowledge
        if not self._life.store_is_read:
            return ClusterFacts(LEARNER, 0, 0, None, ())
        return ClusterFacts(
            self.replication.own_role,
            self.replication.replica.view().epoch,
            knowledge.term,
            knowledge.root,
            members_of(self.replication, self.journal, address),
            tuple(knowledge.elections.kept),
            knowledge.elections.count,
            tuple(knowledge.alarms.values()),
        )

    # The disk.

    def completed(self, completions: Sequence[Completion], now_ms: int) -> None:
        """Raises StoreFault."""
        self.replication.knowledge.now_ms = now_ms
        self.broker.tracing.note_time(now_ms)
        unexpected: Exception | None = None
        for completion in completions:
            try:
                self.journal.completed(completion)
            except StoreFault:
                raise
            except Exception as error:
                # The node ends, and another one reads what is on disk: a failed sync that it does not know of would
                # count as done.
                unexpected = unexpected or error
        if unexpected is not None:
            raise unexpected
        self.hear()

    def hear(self) -> None:
        """Handles the journal's events, some of which come without the disk. Raises StoreFault."""
        while events := self.journal.take_events():
            for event in events:
                self._handle(event)

    def _handle(self, event: Event) -> None:
        match event:
            case Durable(index):
                self._behind = self._behind and self.journal.pending_bytes > BEHIND_BYTES_MAX // 4
                if not self.time.lead.unsaved:
                    self._log.durable(index)
            case PageFetched(page, blob):
                if not self._chunks.fetched(page, blob):
                    self.paging.fetched(page, blob)
            case SpaceLow(free_bytes, min_bytes):
                self._full_disk.is_low(free_bytes, min_bytes)
            case SpaceBack():
                self._full_disk.has_room()
            case SnapshotSaved():
                self.snapshots.saved(event)
            case SnapshotFailed():
                self.snapshots.failed(event, self._now_ms)
            case FlawFound(flaw):
                log.warning(DAMAGED_PAGE, flaw.file, flaw.offset, flaw.text)
            case Closed():
                self.closed = True
            case SnapshotBegins() | RestoredPiece() | Replayed() | Recovered():
                self.opening.hear(event)
                self.snapshots.last_index = self.opening.snapshot_index
            case HardStateSaved():
                self._saved(event)
            case EntriesRead() | Truncated() | PartRead() | PartTaken() | Installed() | InstallFailed() | Emptied():
                self._log.answered(event)
            case RecoveryProgress():
                pass
            case _:
                assert_never(event)

    def _saved(self, event: HardStateSaved) -> None:
        if self.time.lead.saved(event.ticket):
            self._handle(Durable(self.journal.durable_index))
        elif not self.foundation.saved(event.ticket):
            self._log.answered(event)
        elif self.foundation.over is not None:
            self.replication.transitions.restart(self.foundation.over)

    # Taking over.

    def follow(self) -> bool:
        """Gives the broker some of what was committed elsewhere; True if there is more for now."""
        # A root has already applied what it proposed itself, also while it hands over. Applying may fill chunks; if the
        # disk is behind with those, the log waits where it is.
        more = not self.replication.life.took_over and not self._chunks.behind and self.applier.work()
        self.time.applied()
        self.hear()
        return more

    def revive(self, handed_over: bytes | None, now_ms: int) -> None:
        """Applies the effects of a restart, or of another root, to the state, in a batch of the caller; `handed_over`
        is what that root has reported."""
        knowledge, told_ahead_ms = self.replication.knowledge, self.replication.replica.told_ahead_ms
        cluster_ms = self.time.take_over(now_ms, told_ahead_ms, followed=self.applier.has_news)
        self.revival.finish(cluster_ms, takeover=knowledge.stayed(told_ahead_ms), handed_over=handed_over)
        self.broker.note_time(now_ms)

    def work(self) -> bool:
        """Does a bounded part of the pending work; True if there is more for now."""
        if not self._life.store_is_read or self.closed or self._life.state is BrokerState.HANDED_OVER:
            # Its log has entries that its broker object does not know.
            return False
        more = self.paging.turn()
        # A page that was not written yet is returned at once.
        self.hear()
        more = self.snapshots.work(self._now_ms) or more
        self._configuration.work(self._now_ms, is_root=self._life.took_over)
        # A log that has nothing to write is closed at once.
        self.hear()
        return more
