"""Opens the log on disk: the broker's state is restored from the newest snapshot and the entries after it.

Entries are given to the broker at once if they are known to be committed, as all of a broker alone are; otherwise when
the cluster reports it; a store that belongs to no cluster yet waits for one (`foundation`). Messages that were not in
memory stay where they are: the snapshot names their pages. Messages that the log restores leave memory as they do while
the broker runs, so that a restart needs no more of it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, assert_never

from pandomq.broker.log.revival import Revival, UnknownSnapshot
from pandomq.broker.log.snapshot_bodies import StreamBodies
from pandomq.journal.events import Recovered, Replayed, RestoredPiece, SnapshotBegins
from pandomq.journal.faults import VersionFault, corrupt
from pandomq.journal.snapshots.recipe import Bodies
from pandomq.kernel.bodies import entry_bodies, page_bodies

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.journal.journal import Journal
    from pandomq.node.log.applier import Applier
    from pandomq.node.log.foundation import Foundation
    from pandomq.node.log.paging import Paging
    from pandomq.node.log.replication import Replication

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
        self.snapshot_index = 0

    def hear(self, event: SnapshotBegins | RestoredPiece | Replayed | Recovered) -> None:
        """Raises StoreFault."""
        match event:
            case SnapshotBegins(index):
                self._applier.begin(index)
            case RestoredPiece(_, data):
                try:
                    self._revival.take(data)
                except UnknownSnapshot as unknown:
                    raise VersionFault(f"{unknown}. Start the newer version of the broker that wrote it.") from unknown
            case Replayed(entries):
                self._replication.log.replayed(entries)
                if self._replication.log.is_alone:
                    for entry in entries:
                        self._applier.apply(entry)
                        while self._paging.turn():
                            pass
            case Recovered():
                self._recovered(event)
            case _:
                assert_never(event)

    def _recovered(self, recovered: Recovered) -> None:
        for flaw in recovered.flaws:
            log.warning(
                "store file %s was damaged at offset %d, and was repaired if possible: %s",
                flaw.file,
                flaw.offset,
                flaw.text,
            )
        damage = recovered.damage
        if damage is not None:
            if self._replication.log.is_alone:
                raise corrupt(damage.file, damage.offset, damage.text)
            log.error(
                "store file %s is damaged at offset %d and will be repaired: %s",
                damage.file,
                damage.offset,
                damage.text,
            )
        if recovered.torn is not None:
            log.info(
                "removed %d bytes of an unfinished, unacknowledged write from %s",
                recovered.torn.cut_bytes,
                recovered.torn.file,
            )
        cluster_id = self._replication.knowledge.cluster_id = recovered.identity.cluster_id
        self.snapshot_index = recovered.snapshot_index
        self._applier.begin(self._applier.applied_index)
        self._broker.held.replayed(self._applier.applied_index)
        self._journal.replayed()
        self._replication.transitions.store_read()
        if cluster_id:
            self._journal.sender.bodies = self._journal.arrivals.bodies = BODIES
            self._replication.log.begin(recovered)
        self._foundation.begin()
