"""Which backups are in sync, and the alarms if too few are (D13).

A backup is in sync if it answers, gets entries from memory, and has had everything that is committed. A backup that
falls behind the entries in memory is out of sync, and nothing waits for it unless the commit rule needs it; it is in
sync again when it has caught up.
"""

from __future__ import annotations

from collections.abc import Mapping

from pandomq.ids import NodeName
from pandomq.replica import lease
from pandomq.replica.core import Core
from pandomq.replica.effects import AlarmKind
from pandomq.replica.log import commitment
from pandomq.replica.log.progress import Progress, ProgressState


def is_in_sync(core: Core, peer: Progress) -> bool:
    is_heard = peer.heard_ms >= 0 and core.now_ms - peer.heard_ms <= core.settings.lease_ms
    is_near = peer.phase is ProgressState.STREAMING and peer.next_index >= core.tail.first_index
    has_committed = peer.in_sync or peer.received_index >= core.commit_index
    return is_heard and is_near and has_committed and lease.counts(peer)


def update_alarms(core: Core, peers: Mapping[NodeName, Progress]) -> None:
    missing = lacking = False
    for names in core.membership.sets:
        count = commitment.in_sync_count(core, peers, names)
        missing |= count < min(core.settings.min_copies, len(names))
        lacking |= count < commitment.copies_wanted(core, peers, names)
    alone = missing and core.settings.last_man_standing and not lacking
    core.alarm(AlarmKind.LAST_MAN_STANDING, raised=alone, text="commits have fewer copies than min_copies")
    core.alarm(
        AlarmKind.TOO_FEW_COPIES, raised=lacking, text="too few backups are in sync: no message can be committed"
    )
