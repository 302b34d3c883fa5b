"""Takes snapshots of the broker: when one is due, in pieces between batches, and a last one at a clean end."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from pandomq.broker.log.snapshot import Snapshot
from pandomq.ids import LogIndex
from pandomq.limits import KIB, MIB

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.journal.events import SnapshotFailed, SnapshotSaved
    from pandomq.journal.journal import Journal
    from pandomq.journal.snapshots.snapshot_writer import SnapshotWriter
    from pandomq.node.log.applier import Applier
    from pandomq.node.log.paging import Paging
    from pandomq.node.log.replication import Replication

log = logging.getLogger("pandomq")

PIECE_KIND: Final = 1
PIECE_BYTES: Final = 256 * KIB
"""The part of a snapshot that a step encodes."""
PENDING_BYTES_MAX: Final = 4 * MIB
"""Encoded pieces that the disk has not taken yet."""
RETRY_MS: Final = 10_000
"""The wait after a snapshot that was given up."""


class Snapshots:
    def __init__(
        self, journal: Journal, broker: Broker, paging: Paging, applier: Applier, replication: Replication
    ) -> None:
        self._journal = journal
        self._broker = broker
        self._paging = paging
        self._applier = applier
        self._replication = replication
        self._squeezing = False
        self._pieces: Iterator[bytes] | None = None
        self._writer: SnapshotWriter | None = None
        self._closing = False
        self._resting_until_ms = 0
        self.last_index = 0
        """The index of the newest snapshot."""

    def work(self, now_ms: int) -> bool:
        """Does a bounded part of the pending work; True if there is more for now."""
        if self._writer is None:
            return self._begin(now_ms)
        if self._closing and self._replication.has_peers:
            # It was begun before the broker was to stop, and may wait for a commit that never comes.
            self._finish_closing()
            return False
        if self._pieces is None or self._writer.pending_bytes > PENDING_BYTES_MAX:
            return False
        piece = next(self._pieces, None)
        if piece is None:
            self._pieces = None
            self._writer.finish()
            return False
        self._writer.add(PIECE_KIND, piece)
        return True

    def _begin(self, now_ms: int) -> bool:
        due = self._closing or (self._journal.snapshot_due and now_ms >= self._resting_until_ms)
        if not due:
            self._relax()
            return False
        is_root = self._replication.life.took_over
        last_index = self._journal.last_index if is_root else LogIndex(self._applier.applied_index)
        if not self._broker.at_rest:
            self._broker.deferral.pause()
            return False
        if last_index <= self.last_index or (self._closing and self._replication.has_peers):
            # With other brokers the log may not be committed up to here, nor be so soon.
            self._finish_closing()
            return False
        if self._paging.squeeze():
            # The first time another turn is requested; then the disk or the remaining work requests it.
            more = not self._squeezing
            self._squeezing = True
            return more
        snapshot = Snapshot(self._broker, exact=self._closing and is_root)
        self._relax()
        self._writer = self._journal.begin_snapshot(last_index, snapshot.stored)
        self._pieces = snapshot.pieces(PIECE_BYTES)
        return True

    def _relax(self) -> None:
        if self._squeezing:
            self._squeezing = False
            self._paging.relax()

    def saved(self, event: SnapshotSaved) -> None:
        self._writer, self.last_index = None, event.index
        log.info("snapshot of entry %d saved: %d bytes", event.index, event.size_bytes)

    def failed(self, event: SnapshotFailed, now_ms: int) -> None:
        self._writer = self._pieces = None
        self._resting_until_ms = now_ms + RETRY_MS
        log.warning(
            "snapshot of entry %d failed, and is tried again after %d s: %s",
            event.index,
            RETRY_MS // 1000,
            event.reason,
        )
        self._finish_closing()

    def close(self) -> None:
        """A last one, exact because no client is served any more; then everything is synced."""
        self._closing = True

    def _finish_closing(self) -> None:
        if self._closing:
            self._closing = False
            self._journal.close()
