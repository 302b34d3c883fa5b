"""The log on disk, as the node sees it: the journal, and what is done with it.

    opening    the snapshot goes to the broker, and so do the entries after it that are committed (`opening`)
    open       where entries come from, and when they are committed, is the matter of `replication`; snapshots are taken
               (`snapshots`), and messages come and go between memory and disk (`paging`)
    closing    a last snapshot, exact if nobody else serves; then everything is synced

What the disk is to do is fetched by `take_requests`; what it did is told by `completed`, which raises StoreFault when
the store cannot be used, or not any more. Nothing may be confirmed after that.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, assert_never

from pandomq.broker.revival import Revival
from pandomq.ids import LogIndex
from pandomq.journal.effects import Completion, Request
from pandomq.journal.events import (
    Closed,
    Durable,
    Emptied,
    EntriesRead,
    Event,
    FlawFound,
    Installed,
    InstallFailed,
    PageFetched,
    PartRead,
    PartTaken,
    Progress,
    Recovered,
    Replayed,
    SnapshotBegins,
    SnapshotFailed,
    SnapshotPiece,
    SnapshotSaved,
    SpaceBack,
    SpaceLow,
    StateSaved,
    Truncated,
)
from pandomq.kernel import NEVER_MS
from pandomq.limits import MIB
from pandomq.node.applier import Applier
from pandomq.node.chunk_pages import ChunkPages
from pandomq.node.cluster_time import ClusterTime
from pandomq.node.cluster_view import LEARNER, members_of, own_role
from pandomq.node.configuration_source import ConfigurationSource
from pandomq.node.elections import Elections
from pandomq.node.foundation import Foundation
from pandomq.node.full_disk import FullDisk
from pandomq.node.log import LOW_ON_DISK
from pandomq.node.opening import Opening
from pandomq.node.pacing import Pacing
from pandomq.node.paging import Paging
from pandomq.node.replication import Replication
from pandomq.node.snapshots import Snapshots
from pandomq.node.view_records import ClusterFacts

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.broker import Broker
    from pandomq.broker.held_replies import HeldReplies
    from pandomq.journal.journal import Journal
    from pandomq.node.settings import NodeSettings

log = logging.getLogger("pandomq")

BEHIND_BYTES_MAX: Final = 64 * MIB
"""Of the log, in memory because the disk has not taken it yet."""
TICK_MS_MIN: Final = 5
"""The replica is not told the time more often than that without a reason."""


class DiskLog:
    def __init__(self, journal: Journal, broker: Broker, settings: NodeSettings, random: Random) -> None:
        self._journal = journal
        self._broker = broker
        broker.tracing.in_office = False
        self._paging = Paging(broker.engine, journal.pages)
        self._chunks = broker.state.shelf.store = ChunkPages(journal.pages)
        self._revival = Revival(broker, self._paging.adopt)
        self._time = ClusterTime(broker, self._revival)
        self._applier = Applier(journal, self._revival)
        self.replication = Replication(settings.name, settings.cluster, journal, broker, self._applier, random)
        self._configuration = self.replication.transfer.configuration = ConfigurationSource(
            settings.name, journal, broker
        )
        self.foundation = Foundation(settings.name, settings.cluster, journal, random)
        self._opening = Opening(
            journal, broker, self._paging, self._revival, self._applier, self.replication, self.foundation
        )
        self._snapshots = Snapshots(journal, broker, self._paging, self._applier, self.replication)
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
    def open(self) -> bool:
        return self._opening.over

    @property
    def following(self) -> bool:
        """Open, and there are others to follow, or to wait for."""
        return self.open and (self.replication.has_peers or self.foundation.waiting is not None)

    @property
    def held(self) -> HeldReplies:
        """Of the broker whose state is the log's."""
        return self._broker.held

    @property
    def applied_index(self) -> int:
        """The broker has what is in the log up to there, while another broker is root."""
        return self._applier.applied_index

    @property
    def commit_index(self) -> int:
        return self._applier.commit_index

    @property
    def cluster_id(self) -> str:
        return self._opening.cluster_id

    @property
    def last_index(self) -> LogIndex:
        return self._journal.last_index if self.open else LogIndex(0)

    def append(self, entry: bytes, *, prompt: bool = False) -> LogIndex:
        self.appended_bytes += len(entry)
        self._time.wrote()
        self._behind = self._behind or self._journal.pending_bytes > BEHIND_BYTES_MAX
        return self.replication.propose(entry, prompt=prompt)

    def sync(self) -> None:
        self._journal.sync()

    def tick(self, now_ms: int, monotonic_ms: int) -> None:
        self._now_ms = self.replication.notices.now_ms = now_ms
        if self.open and not self.closed:
            self._journal.tick(monotonic_ms)
            self.foundation.tick(monotonic_ms)
            self._full_disk.tick(monotonic_ms)
            replication = self.replication
            self._keep_log()
            if replication.in_office and replication.has_peers:
                replication.notices.watch(replication.replica.view().peers, replication.linked)
                self._say_time(now_ms)

    def _keep_log(self) -> None:
        """What others may still want of it."""
        replication, replica = self.replication, self.replication.replica
        stragglers = replica.stragglers if replication.in_office else []
        needed_from = replica.needed_from if replication.in_office else None
        wanted_from = min((straggler.first_index for straggler in stragglers), default=None)
        retained_bytes = self._state_bytes if replication.has_peers and self._is_missed() else 0
        self._journal.pin(needed_from, retained_bytes, wanted_from)
        if self._pacing.is_due:
            read_from = [straggler.first_index for straggler in stragglers if straggler.reads_log]
            self._pacing.look(self._journal.bytes_after(LogIndex(min(read_from) - 1)) if read_from else None)

    def _is_missed(self) -> bool:
        """A member that is not there, or behind, will want the log from where it was. It gets that as long as it is
        less than the whole state would be."""
        replication = self.replication
        in_sync = replication.linked
        if replication.in_office:
            in_sync = {peer.name for peer in replication.replica.view().peers if peer.in_sync}
        return bool(replication.notices.membership.names - in_sync - {self._name})

    @property
    def _state_bytes(self) -> int:
        return self._journal.snapshots.last_bytes + self._journal.pages.live_bytes

    def _say_time(self, now_ms: int) -> None:
        entry = self._time.due_entry(now_ms)
        if entry is not None and self.replication.serving:
            self.append(entry)
            self.sync()

    def note_time(self, monotonic_ms: int) -> None:
        """To be told before anything else of that time."""
        self._time.monotonic_ms = monotonic_ms
        self._pacing.note_time(monotonic_ms)
        replication = self.replication
        known = replication.in_office or replication.notices.followed
        replication.replica.know_time(self._time.ahead_ms(followed=known))
        replication.tick(monotonic_ms)

    @property
    def next_deadline_ms(self) -> int:
        """When the replica wants to know the time: when it says so, and now and then in any case."""
        replication = self.replication
        if not replication.has_peers:
            return NEVER_MS
        wanted_ms = replication.replica.next_tick_ms - self._time.monotonic_ms
        if (wait_ms := self._pacing.wait_ms) is not None:
            wanted_ms = min(wanted_ms, wait_ms)
        return self._now_ms + min(replication.tick_ms, max(TICK_MS_MIN, wanted_ms))

    @property
    def last_ms(self) -> int:
        """The time of what came back, or came from elsewhere; the cluster's clock goes on from there."""
        return self._revival.last_ms

    @property
    def holds_back(self) -> str | None:
        """Why publishers are to wait: the disk is nearly full or far behind, or nothing they publish is committed."""
        if self._full_disk.low or self._behind or self._paging.behind or self._chunks.behind:
            return LOW_ON_DISK
        waits = self.replication.in_office and self.replication.replica.holds_back
        return "waiting for backups" if waits else None

    @property
    def rests(self) -> bool:
        return self.replication.in_office and self._pacing.resting

    @property
    def alarms(self) -> tuple[str, ...]:
        return tuple(kind.value for kind in self.replication.notices.alarms)

    @property
    def elections(self) -> Elections:
        return self.replication.notices.elections

    @elections.setter
    def elections(self, known: Elections) -> None:
        self.replication.notices.elections = known

    @property
    def time_ahead_ms(self) -> int | None:
        return self._time.last_ahead_ms

    @time_ahead_ms.setter
    def time_ahead_ms(self, known: int | None) -> None:
        self._time.last_ahead_ms = known

    def cluster(self, name: str, address: str) -> ClusterFacts:
        """What is known here, on the broker of this name and address."""
        notices = self.replication.notices
        if not self.open:
            return ClusterFacts(LEARNER, 0, 0, None, ())
        return ClusterFacts(
            own_role(self.replication),
            self.replication.replica.view().epoch,
            notices.term,
            notices.root,
            members_of(self.replication, self._journal, address),
            tuple(notices.elections.kept),
            notices.elections.count,
            tuple(notices.alarms.values()),
        )

    # The disk.

    def take_requests(self) -> list[Request]:
        return self._journal.take_requests()

    def completed(self, completions: Sequence[Completion], now_ms: int) -> None:
        """Raises StoreFault."""
        self.replication.notices.now_ms = now_ms
        self._broker.tracing.note_time(now_ms)
        for completion in completions:
            self._journal.completed(completion)
        self.hear()

    def hear(self) -> None:
        """What the journal has to say; some of it it says without the disk. Raises StoreFault."""
        while events := self._journal.take_events():
            for event in events:
                self._handle(event)

    def _handle(self, event: Event) -> None:
        match event:
            case Durable(index):
                self._behind = self._behind and self._journal.pending_bytes > BEHIND_BYTES_MAX // 4
                self.replication.durable(index)
            case PageFetched(page, blob):
                if not self._chunks.fetched(page, blob):
                    self._paging.fetched(page, blob)
            case SpaceLow(free_bytes):
                self._full_disk.is_low()
                log.warning("disk alarm: %d bytes are free; publishers are held back", free_bytes)
            case SpaceBack():
                self._full_disk.has_room()
                log.info("disk alarm cleared")
            case SnapshotSaved():
                self._snapshots.saved(event)
            case SnapshotFailed():
                self._snapshots.failed(event, self._now_ms)
            case FlawFound(flaw):
                log.warning("%s is damaged at offset %d: %s", flaw.file, flaw.offset, flaw.text)
            case Closed():
                self.closed = True
            case SnapshotBegins() | SnapshotPiece() | Replayed() | Recovered():
                self._opening.hear(event)
                self._snapshots.last_index = self._opening.snapshot_index
            case StateSaved() | Truncated() | EntriesRead():
                self._answer(event)
            case PartRead() | PartTaken() | Installed() | InstallFailed() | Emptied():
                self._transfer(event)
            case Progress():
                pass
            case _:
                assert_never(event)

    def _answer(self, event: StateSaved | Truncated | EntriesRead) -> None:
        match event:
            case StateSaved(ticket):
                if not self.foundation.saved(ticket):
                    self.replication.state_saved(ticket)
                elif self.foundation.over is not None:
                    self.replication.store_replaced(self.foundation.over)
            case Truncated(_, aside):
                if aside is not None:
                    log.warning("what was cut off the log is kept aside in %s", aside)
                self.replication.truncated()
            case EntriesRead():
                self.replication.entries_read(event)
            case _:
                assert_never(event)

    def _transfer(self, event: PartRead | PartTaken | Installed | InstallFailed | Emptied) -> None:
        match event:
            case PartRead():
                self.replication.transfer.part_read(event)
            case PartTaken():
                self.replication.transfer.part_taken(event)
            case Installed():
                self.replication.store_replaced("a snapshot from another broker takes the place of the store")
            case InstallFailed(ticket, reason):
                self.replication.transfer.install_failed(ticket, reason)
            case Emptied():
                self.replication.store_replaced("the store is set aside")
            case _:
                assert_never(event)

    # Taking over.

    def follow(self) -> bool:
        """Gives the broker some of what was committed elsewhere; True if there is more for now."""
        # What a root has proposed itself it has done already, also while it hands over.
        # What it applies may fill chunks; if the disk is behind with those, the log waits where it is.
        more = not self.replication.in_office and not self._chunks.behind and self._applier.work()
        self._time.heard()
        self.hear()
        return more

    def take_office(self, now_ms: int) -> None:
        """What a restart, or another root, means for what there is. Wants a batch."""
        serve = self.replication.elected
        assert serve is not None
        self.replication.in_office = self._broker.tracing.in_office = True
        self._broker.engine.term = serve.term
        self._broker.held.replayed(serve.index)
        self._broker.committed(serve.index)
        followed = self.replication.notices.followed
        cluster_ms = self._time.take_office(now_ms, self.replication.replica.told_ahead_ms, followed=followed)
        self._revival.finish(cluster_ms, takeover=followed, handed_over=serve.handed_over)
        self._broker.note_time(now_ms)
        self.replication.notices.took_office(self._name, serve.term, handed_over=serve.handed_over is not None)

    def set_paging(self, paging_bytes: int) -> None:
        self._paging.set_limit(paging_bytes)

    # Between batches.

    def work(self) -> bool:
        """Does a bounded part of what there is to do; True if there is more for now."""
        if not self.open or self.closed or self.replication.lingering is not None:
            # Who lingers has entries in its log that its broker does not know.
            return False
        more = self._paging.turn()
        # A page that was not written yet is there already.
        self.hear()
        more = self._snapshots.work(self._now_ms) or more
        self._configuration.work(self._now_ms, in_office=self.replication.in_office)
        # A log that has nothing to write is closed at once.
        self.hear()
        return more

    def close(self) -> None:
        """The last snapshot is taken, then everything is synced; `closed` tells."""
        self._snapshots.close()
