"""Opens the log on disk: what a broker had comes back from the newest snapshot and the entries after it.

Messages that were not in memory stay where they are: the snapshot names their pages. Those that the log brings again
leave memory as they do while the broker runs, so that a restart needs no more of it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, assert_never

import msgspec

from pandomq.broker.revival import Revival, UnknownSnapshot
from pandomq.journal.events import Recovered, Replayed, SnapshotPiece, StateSaved
from pandomq.journal.faults import VersionFault, corrupt
from pandomq.kernel.records import BadEntry

if TYPE_CHECKING:
    from collections.abc import Callable

    from pandomq.broker.broker import Broker
    from pandomq.journal.events import Entry
    from pandomq.journal.journal import Journal
    from pandomq.node.paging import Paging

log = logging.getLogger("pandomq")


class Opening:
    def __init__(self, journal: Journal, broker: Broker, paging: Paging, on_open: Callable[[], None]) -> None:
        self._journal = journal
        self._broker = broker
        self._paging = paging
        self._on_open = on_open
        self._revival = Revival(broker, paging.adopt)
        self.over = False
        self.term = 0
        self.cluster_id = ""
        self.snapshot_index = 0

    @property
    def last_ms(self) -> int:
        """The time of what came back; the cluster's clock goes on from there."""
        return self._revival.last_ms

    def hear(self, event: SnapshotPiece | Replayed | Recovered | StateSaved) -> None:
        """Raises StoreFault."""
        match event:
            case SnapshotPiece(_, data):
                try:
                    self._revival.take(data)
                except UnknownSnapshot as unknown:
                    raise VersionFault(f"{unknown}. Start the newer broker that wrote it.") from unknown
            case Replayed(entries):
                for entry in entries:
                    self._apply(entry)
                    while self._paging.turn():
                        pass
            case Recovered():
                self._recovered(event)
            case StateSaved():
                self._broker.engine.term = self.term
                self._journal.replayed()
                self.over = True
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
        self.snapshot_index = recovered.snapshot_index
        self._broker.held.replayed(recovered.last_index)
        self._broker.committed(recovered.last_index)
        self._journal.commit(recovered.last_index)
        # A broker alone elects itself: what it writes from now on is told from what it wrote before.
        self.term = max(recovered.hard_state.term, recovered.last_term) + 1
        self._journal.save_state(msgspec.structs.replace(recovered.hard_state, term=self.term))

    def finish(self, now_ms: int) -> None:
        """After `on_open`: what a restart means for what came back. Wants a batch."""
        self._revival.finish(now_ms)
