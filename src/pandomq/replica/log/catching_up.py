"""Brokers that need entries from before the root's memory, and are catching up."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from pandomq.ids import LogIndex, NodeName
from pandomq.replica.core import Core
from pandomq.replica.limits import AWAY_MS
from pandomq.replica.log.progress import Progress, ProgressState


class LaggingPeer(msgspec.Struct, frozen=True):
    name: NodeName
    first_index: LogIndex
    """The first entry that it still needs from the log."""
    reads_log: bool
    """Whether the broker reads the log. Otherwise it gets a snapshot first, or its link is broken for a moment."""


def lagging_peers(core: Core, peers: Iterable[Progress]) -> list[LaggingPeer]:
    """Secondaries are not included: nothing waits for them."""
    found: list[LaggingPeer] = []
    for peer in peers:
        is_heard = peer.heard_ms >= 0 and core.now_ms - peer.heard_ms <= AWAY_MS
        if peer.in_sync or peer.observer or not is_heard:
            continue
        if peer.phase is ProgressState.STREAMING:
            found.append(LaggingPeer(peer.name, LogIndex(peer.received_index + 1), peer.name in core.links))
        elif peer.transfer is not None and peer.transfer.index:
            found.append(LaggingPeer(peer.name, LogIndex(peer.transfer.index + 1), reads_log=False))
    return found
