"""The log on disk, as the node sees it: the journal, and what is done with it.

    opening    the snapshot and the entries after it go to the broker; then a new term begins (`opening`)
    open       batches are appended; what the disk says is durable is committed; snapshots are taken (`snapshots`), and
               messages come and go between memory and disk (`paging`)
    closing    a last snapshot, exact because nobody is served any more; then everything is synced

What the disk is to do is fetched by `take_requests`; what it did is told by `completed`, which raises StoreFault when
the store cannot be used, or not any more. Nothing may be confirmed after that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, assert_never

from pandomq.ids import LogIndex, Term
from pandomq.journal.effects import Completion, Request
from pandomq.journal.events import (
    Closed,
    Durable,
    EntriesRead,
    Event,
    FlawFound,
    PageFetched,
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
from pandomq.limits import MIB
from pandomq.node.opening import Opening
from pandomq.node.paging import Paging
from pandomq.node.snapshots import Snapshots

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.journal.journal import Journal

log = logging.getLogger("pandomq")

BEHIND_BYTES_MAX: Final = 64 * MIB
"""Of the log, in memory because the disk has not taken it yet."""


class DiskLog:
    def __init__(self, journal: Journal, broker: Broker, on_open: Callable[[], None]) -> None:
        self._journal = journal
        self._broker = broker
        self._paging = Paging(broker.engine, journal.pages)
        self._opening = Opening(journal, broker, self._paging, on_open)
        self._snapshots = Snapshots(journal, broker)
        self._now_ms = 0
        self.closed = False
        self._space_low = False
        self._behind = False
        self.appended_bytes = 0
        journal.open()

    # The log.

    @property
    def open(self) -> bool:
        return self._opening.over

    @property
    def cluster_id(self) -> str:
        return self._opening.cluster_id

    @property
    def last_index(self) -> LogIndex:
        return self._journal.last_index if self.open else LogIndex(0)

    def append(self, entry: bytes) -> LogIndex:
        self.appended_bytes += len(entry)
        self._behind = self._behind or self._journal.pending_bytes > BEHIND_BYTES_MAX
        return self._journal.append(Term(self._opening.term), entry)

    def sync(self) -> None:
        self._journal.sync()

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms
        if self.open and not self.closed:
            self._journal.tick(now_ms)

    @property
    def last_ms(self) -> int:
        """The time of what came back; the cluster's clock goes on from there."""
        return self._opening.last_ms

    @property
    def holds_back(self) -> bool:
        """Publishers are to wait: the disk is nearly full, or far behind."""
        return self._space_low or self._behind or self._paging.behind

    # The disk.

    def take_requests(self) -> list[Request]:
        return self._journal.take_requests()

    def completed(self, completions: Sequence[Completion]) -> None:
        """Raises StoreFault."""
        for completion in completions:
            self._journal.completed(completion)
        self._hear()

    def _hear(self) -> None:
        while events := self._journal.take_events():
            for event in events:
                self._handle(event)

    def _handle(self, event: Event) -> None:
        match event:
            case Durable(index):
                self._journal.commit(index)
                self._behind = self._behind and self._journal.pending_bytes > BEHIND_BYTES_MAX // 4
                self._broker.committed(index)
            case PageFetched(page, blob):
                self._paging.fetched(page, blob)
            case SpaceLow(free_bytes):
                self._space_low = True
                log.warning("disk alarm: %d bytes are free; publishers are held back", free_bytes)
            case SpaceBack():
                self._space_low = False
                log.info("disk alarm cleared")
            case SnapshotSaved():
                self._snapshots.saved(event)
            case SnapshotFailed():
                self._snapshots.failed(event, self._now_ms)
            case FlawFound(flaw):
                log.warning("%s is damaged at offset %d: %s", flaw.file, flaw.offset, flaw.text)
            case Closed():
                self.closed = True
            case SnapshotPiece() | Replayed() | Recovered() | StateSaved():
                self._opening.hear(event)
                self._snapshots.last_index = self._opening.snapshot_index
            case Progress() | SnapshotBegins() | EntriesRead() | Truncated():
                pass
            case _:
                assert_never(event)

    def finish_opening(self, now_ms: int) -> None:
        """After `on_open`: what a restart means for what came back. Wants a batch."""
        self._opening.finish(now_ms)

    def set_paging(self, paging_bytes: int) -> None:
        self._paging.set_limit(paging_bytes)

    # Between batches.

    def work(self) -> bool:
        """Does a bounded part of what there is to do; True if there is more for now."""
        if not self.open or self.closed:
            return False
        more = self._paging.turn()
        # A page that was not written yet is there already.
        self._hear()
        return self._snapshots.work(self._now_ms) or more

    def close(self) -> None:
        """The last snapshot is taken, then everything is synced; `closed` tells."""
        self._snapshots.close()
