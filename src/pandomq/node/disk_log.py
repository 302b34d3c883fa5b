"""The log on disk, as the node sees it: the journal, what comes back from it at a start, and snapshots.

    opening    the snapshot and the entries after it go to the broker; then a new term begins
    open       batches are appended; what the disk says is durable is committed
    closing    a last snapshot, exact because nobody is served any more; then everything is synced

What the disk is to do is fetched by `take_requests`; what it did is told by `completed`, which raises StoreFault when
the store cannot be used, or not any more. Nothing may be confirmed after that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, assert_never

import msgspec

from pandomq.broker.revival import Revival, UnknownSnapshot
from pandomq.broker.snapshot import Snapshot
from pandomq.ids import LogIndex, Term
from pandomq.journal.effects import Completion, Request
from pandomq.journal.events import (
    Closed,
    Durable,
    EntriesRead,
    Entry,
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
from pandomq.journal.faults import VersionFault, corrupt
from pandomq.kernel.records import BadEntry
from pandomq.limits import KIB, MIB

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.journal.journal import Journal
    from pandomq.journal.snapshot_writer import SnapshotWriter

log = logging.getLogger("pandomq")

PIECE_KIND: Final = 1
PIECE_BYTES: Final = 256 * KIB
"""What a step encodes of a snapshot."""
PENDING_BYTES_MAX: Final = 4 * MIB
"""Encoded pieces that the disk has not taken yet."""
RETRY_MS: Final = 10_000
"""After a snapshot that was given up."""
BEHIND_BYTES_MAX: Final = 256 * MIB
"""Of the log, in memory because the disk has not taken it yet."""


class DiskLog:
    def __init__(self, journal: Journal, broker: Broker, on_open: Callable[[], None]) -> None:
        self._journal = journal
        self._broker = broker
        self._on_open = on_open
        self._revival = Revival(broker)
        self._term = 0
        self._pieces: Iterator[bytes] | None = None
        self._writer: SnapshotWriter | None = None
        self._snapshot_index = 0
        self._closing = False
        self._now_ms = 0
        self._resting_until_ms = 0
        self.open = False
        self.closed = False
        self._space_low = False
        self._behind = False
        self.cluster_id = ""
        self.appended_bytes = 0
        journal.open()

    # The log.

    @property
    def last_index(self) -> LogIndex:
        return self._journal.last_index if self.open else LogIndex(0)

    def append(self, entry: bytes) -> LogIndex:
        self.appended_bytes += len(entry)
        self._behind = self._behind or self._journal.pending_bytes > BEHIND_BYTES_MAX
        return self._journal.append(Term(self._term), entry)

    def sync(self) -> None:
        self._journal.sync()

    def tick(self, now_ms: int) -> None:
        self._now_ms = now_ms
        if self.open and not self.closed:
            self._journal.tick(now_ms)

    @property
    def last_ms(self) -> int:
        """The time of what came back; the cluster's clock goes on from there."""
        return self._revival.last_ms

    @property
    def holds_back(self) -> bool:
        """Publishers are to wait: the disk is nearly full, or far behind."""
        return self._space_low or self._behind

    # The disk.

    def take_requests(self) -> list[Request]:
        return self._journal.take_requests()

    def completed(self, completions: Sequence[Completion]) -> None:
        """Raises StoreFault."""
        for completion in completions:
            self._journal.completed(completion)
        while events := self._journal.take_events():
            for event in events:
                self._handle(event)

    def _handle(self, event: Event) -> None:
        match event:
            case Durable(index):
                self._journal.commit(index)
                self._behind = self._behind and self._journal.pending_bytes > BEHIND_BYTES_MAX // 4
                self._broker.committed(index)
            case SpaceLow(free_bytes):
                self._space_low = True
                log.warning("disk alarm: %d bytes are free; publishers are held back", free_bytes)
            case SpaceBack():
                self._space_low = False
                log.info("disk alarm cleared")
            case SnapshotSaved(index, size_bytes):
                self._writer, self._snapshot_index = None, index
                log.info("snapshot of entry %d saved: %d bytes", index, size_bytes)
            case SnapshotFailed(index, reason):
                self._writer = self._pieces = None
                self._resting_until_ms = self._now_ms + RETRY_MS
                log.warning("snapshot of entry %d given up: %s", index, reason)
                if self._closing:
                    self._closing = False
                    self._journal.close()
            case FlawFound(flaw):
                log.warning("%s is damaged at offset %d: %s", flaw.file, flaw.offset, flaw.text)
            case Closed():
                self.closed = True
            case Progress() | SnapshotBegins() | EntriesRead() | PageFetched() | Truncated():
                pass
            case SnapshotPiece() | Replayed() | Recovered() | StateSaved():
                self._revive(event)
            case _:
                assert_never(event)

    # Opening.

    def _revive(self, event: SnapshotPiece | Replayed | Recovered | StateSaved) -> None:
        match event:
            case SnapshotPiece(_, data):
                try:
                    self._revival.take(data)
                except UnknownSnapshot as unknown:
                    raise VersionFault(f"{unknown}. Start the newer broker that wrote it.") from unknown
            case Replayed(entries):
                for entry in entries:
                    self._apply(entry)
            case Recovered():
                self._recovered(event)
            case StateSaved():
                self._broker.engine.term = self._term
                self._journal.replayed()
                self.open = True
                self._on_open()
            case _:
                assert_never(event)

    def _apply(self, entry: Entry) -> None:
        try:
            self._revival.apply(entry.index, entry.term, entry.payload)
        except BadEntry as bad:
            raise VersionFault(f"entry {entry.index} of the log cannot be read here: {bad}") from bad

    def _recovered(self, recovered: Recovered) -> None:
        for flaw in recovered.flaws:
            log.warning("%s is damaged at offset %d, and mended if it could be: %s", flaw.file, flaw.offset, flaw.text)
        damage = recovered.damage
        if damage is not None:
            raise corrupt(damage.file, damage.offset, damage.text)
        if recovered.torn is not None:
            log.info("cut %d bytes that nobody was told of off %s", recovered.torn.cut_bytes, recovered.torn.file)
        self.cluster_id = recovered.identity.cluster_id
        self._snapshot_index = recovered.snapshot_index
        self._broker.held.replayed(recovered.last_index)
        self._broker.committed(recovered.last_index)
        self._journal.commit(recovered.last_index)
        # A broker alone elects itself: what it writes from now on is told from what it wrote before.
        self._term = max(recovered.hard_state.term, recovered.last_term) + 1
        self._journal.save_state(msgspec.structs.replace(recovered.hard_state, term=self._term))

    def finish_opening(self, now_ms: int) -> None:
        """After `on_open`: what a restart means for what came back. Wants a batch."""
        self._revival.finish(now_ms)

    # Snapshots.

    def work(self) -> bool:
        """Does a bounded part of what there is to do between batches; True if there is more for now."""
        if not self.open or self.closed:
            return False
        if self._writer is None:
            return self._begin_snapshot()
        if self._pieces is None or self._writer.pending_bytes > PENDING_BYTES_MAX:
            return False
        piece = next(self._pieces, None)
        if piece is None:
            self._pieces = None
            self._writer.finish()
            return False
        self._writer.add(PIECE_KIND, piece)
        return True

    def _begin_snapshot(self) -> bool:
        last_index = self._journal.last_index
        due = self._journal.snapshot_due and self._now_ms >= self._resting_until_ms
        if not self._broker.at_rest or not (self._closing or due):
            return False
        if last_index <= self._snapshot_index:
            if self._closing:
                self._closing = False
                self._journal.close()
            return False
        self._writer = self._journal.begin_snapshot(last_index)
        self._pieces = Snapshot(self._broker, exact=self._closing).pieces(PIECE_BYTES)
        return True

    def close(self) -> None:
        """The last snapshot is taken, then everything is synced; `closed` tells."""
        self._closing = True
