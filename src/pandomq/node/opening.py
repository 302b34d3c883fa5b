"""Opens the log on disk: what a broker had comes back from the newest snapshot and the entries after it.

Entries are given to the broker at once if they are known to be committed, as all of a broker alone are; otherwise when
the cluster says so; a store that belongs to no cluster yet waits for one (`foundation`). Messages that were not in
memory stay where they are: the snapshot names their pages. Those that the log brings again leave memory as they do
while the broker runs, so that a restart needs no more of it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, assert_never

from pandomq.broker.revival import Revival, UnknownSnapshot
from pandomq.broker.snapshot_bodies import StreamBodies
from pandomq.journal.events import Recovered, Replayed, SnapshotBegins, SnapshotPiece
from pandomq.journal.faults import VersionFault, corrupt
from pandomq.journal.recipe import Bodies
from pandomq.kernel.bodies import entry_bodies, page_bodies

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.journal.journal import Journal
    from pandomq.node.applier import Applier
    from pandomq.node.foundation import Foundation
    from pandomq.node.paging import Paging
    from pandomq.node.replication import Replication

log = logging.getLogger("pandomq")

BODIES: Final = Bodies(page_bodies, entry_bodies, StreamBodies)


class Opening:
    def __init__(
        self,
        journal: Journal,
        broker: Broker,
        paging: Paging,
        revival: Revival,
        applier: Applier,
        replication: Replication,
        foundation: Foundation,
    ) -> None:
        self._journal = journal
        self._broker = broker
        self._paging = paging
        self._revival = revival
        self._applier = applier
        self._replication = replication
        self._foundation = foundation
        self.over = False
        self.cluster_id = ""
        self.snapshot_index = 0

    def hear(self, event: SnapshotBegins | SnapshotPiece | Replayed | Recovered) -> None:
        """Raises StoreFault."""
        match event:
            case SnapshotBegins(index):
                self._applier.begin(index)
            case SnapshotPiece(_, data):
                try:
                    self._revival.take(data)
                except UnknownSnapshot as unknown:
                    raise VersionFault(f"{unknown}. Start the newer broker that wrote it.") from unknown
            case Replayed(entries):
                self._replication.replayed(entries)
                if self._is_alone:
                    for entry in entries:
                        self._applier.apply(entry)
                        while self._paging.turn():
                            pass
            case Recovered():
                self._recovered(event)
            case _:
                assert_never(event)

    @property
    def _is_alone(self) -> bool:
        return self._replication.is_alone(self._journal.found_state)

    def _recovered(self, recovered: Recovered) -> None:
        for flaw in recovered.flaws:
            log.warning("%s is damaged at offset %d, and mended if it could be: %s", flaw.file, flaw.offset, flaw.text)
        damage = recovered.damage
        if damage is not None:
            if self._is_alone:
                raise corrupt(damage.file, damage.offset, damage.text)
            log.error("%s is damaged at offset %d and waits for repair: %s", damage.file, damage.offset, damage.text)
        if recovered.torn is not None:
            log.info("cut %d bytes that nobody was told of off %s", recovered.torn.cut_bytes, recovered.torn.file)
        self.cluster_id = recovered.identity.cluster_id
        self.snapshot_index = recovered.snapshot_index
        self._applier.begin(self._applier.applied_index)
        self._broker.held.replayed(self._applier.applied_index)
        self._journal.replayed()
        self.over = True
        if self.cluster_id:
            self._journal.sender.bodies = self._journal.arrivals.bodies = BODIES
            self._replication.begin(recovered)
        self._foundation.begin()
