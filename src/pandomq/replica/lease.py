"""How long a root may go on: as long as at least half of the voters answer it, and its own disk does.

The lease runs from the moment when the append was sent that they answered, not from when the answer came. Whoever
answers promises to vote for nobody else for longer than that. So while the lease holds nobody else is root; that
matters to those who read from a root, while commits never depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pandomq.ids import NodeName
from pandomq.replica import quorum
from pandomq.replica.core import Core
from pandomq.replica.progress import Progress


def counts(peer: Progress) -> bool:
    """One that is in doubt about its own past has nothing to give: not its copy, nor its promise."""
    return not peer.joining and not peer.observer


def voters(core: Core, peers: Mapping[NodeName, Progress]) -> list[Progress]:
    """The other voters that count; there may be many more who only listen."""
    return [peers[name] for name in core.membership.names if name in peers and counts(peers[name])]


def until_ms(core: Core, peers: Mapping[NodeName, Progress]) -> int:
    """When the lease ends if nothing more is heard."""
    rounds: dict[NodeName, int] = {peer.name: peer.round for peer in voters(core, peers)}
    rounds[core.name] = core.now_ms
    return core.membership.reached(rounds, quorum.half) + core.settings.lease_ms


def holds(core: Core, peers: Mapping[NodeName, Progress]) -> bool:
    # Who is alone is asked for every batch, and needs nobody.
    return not core.others or core.now_ms < until_ms(core, peers)
