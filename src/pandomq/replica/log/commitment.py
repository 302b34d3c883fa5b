"""Decides when an entry is safe: enough brokers have it on disk, and it is of the root's own term.

An entry of an older term may be on most disks and still be cut by the next root, if that one has an entry of a newer
term that few brokers have (figure 8 of the Raft paper). So such entries are never committed by counting copies: they
are committed when a later entry of the current term is.
"""

from __future__ import annotations

from collections.abc import Mapping

from pandomq.ids import LogIndex, NodeName
from pandomq.replica import lease
from pandomq.replica.core import Core
from pandomq.replica.log.progress import Progress
from pandomq.replica.members import quorum


def copies_wanted(core: Core, peers: Mapping[NodeName, Progress], names: tuple[NodeName, ...]) -> int:
    """For one set of voters. With `last_man_standing` the number shrinks to the brokers in sync, but not below half."""
    settings = core.settings
    need = quorum.commit_need(len(names), settings.min_copies)
    if settings.last_man_standing:
        need = max(quorum.half(len(names)), min(need, in_sync_count(core, peers, names)))
    return need


def in_sync_count(core: Core, peers: Mapping[NodeName, Progress], names: tuple[NodeName, ...]) -> int:
    return sum(name == core.name or (name in peers and peers[name].in_sync) for name in names)


def enough_have(core: Core, peers: Mapping[NodeName, Progress], values: Mapping[NodeName, int]) -> int:
    """The index up to which enough brokers have the log, in the old and in the new set of voters."""
    return min(
        quorum.reached_by((values.get(name, -1) for name in names), copies_wanted(core, peers, names))
        for names in core.membership.sets
    )


def synced_values(core: Core, peers: Mapping[NodeName, Progress]) -> dict[NodeName, int]:
    """The last synced index of each broker. The root's own copy counts when it is on its disk, like any other."""
    values: dict[NodeName, int] = {peer.name: peer.synced_index for peer in lease.voters(core, peers)}
    values[core.name] = core.synced_index
    return values


def synced_by_enough(core: Core, peers: Mapping[NodeName, Progress]) -> LogIndex:
    if not core.others:
        return core.synced_index
    return LogIndex(max(enough_have(core, peers, synced_values(core, peers)), 0))


def received_by_enough(core: Core, peers: Mapping[NodeName, Progress]) -> LogIndex:
    if not core.others:
        return core.tail.last_index
    values: dict[NodeName, int] = {peer.name: peer.received_index for peer in lease.voters(core, peers)}
    values[core.name] = core.tail.last_index
    return LogIndex(max(enough_have(core, peers, values), 0))


def is_of_this_term(core: Core, index: LogIndex) -> bool:
    return core.tail.term_at(index) == core.term
