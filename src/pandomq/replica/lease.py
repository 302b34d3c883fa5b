"""How long a root may serve: as long as at least half of the voters answer it, and its own disk does.

The lease runs from the moment when the answered append was sent, not from when the answer came. A voter that answers
promises to vote for no other broker for longer than that. So while the lease holds there is no other root; this matters
for reads from a root, while commits never depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pandomq.ids import NodeName
from pandomq.replica.core import Core
from pandomq.replica.log.progress import Progress
from pandomq.replica.members import quorum


def counts(peer: Progress) -> bool:
    """A broker that is in doubt about its own past does not count: neither its copy nor its promise."""
    return not peer.joining and not peer.observer


def voters(core: Core, peers: Mapping[NodeName, Progress]) -> list[Progress]:
    """The other voters that count; there may be many more brokers that only receive the log."""
    return [peers[name] for name in core.membership.names if name in peers and counts(peers[name])]


def until_ms(core: Core, peers: Mapping[NodeName, Progress]) -> int:
    """The time at which the lease ends if no further answer arrives."""
    membership = core.membership
    rounds: dict[NodeName, int] = {}
    for name in membership.names:
        peer = peers.get(name)
        if peer is not None and counts(peer):
            rounds[name] = peer.round
    rounds[core.name] = core.now_ms
    return membership.reached(rounds, quorum.half) + core.settings.lease_ms


def holds(core: Core, peers: Mapping[NodeName, Progress]) -> bool:
    # Called for every batch; a single broker needs no other.
    return not core.others or core.now_ms < until_ms(core, peers)
