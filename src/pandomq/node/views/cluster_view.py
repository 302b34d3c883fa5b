"""The members of a cluster as this broker sees them. Only a root knows how far the others are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from pandomq.ids import LogIndex
from pandomq.node.views.records import MemberView
from pandomq.replica.roles.transitions import Role

if TYPE_CHECKING:
    from pandomq.journal.journal import Journal
    from pandomq.node.log.replication import Replication
    from pandomq.replica.view import PeerView, ReplicaView

ROOT: Final = "root"
BACKUP: Final = "backup"
LEARNER: Final = "learner"
SECONDARY: Final = "secondary"
ABSENT: Final = "absent"

OWN_ROLES: Final = {
    Role.RECOVERING: LEARNER,
    Role.LEARNER: LEARNER,
    Role.BACKUP: BACKUP,
    Role.CANDIDATE: BACKUP,
    Role.ROOT: ROOT,
    Role.OBSERVER: SECONDARY,
}


def members_of(replication: Replication, journal: Journal, own_address: str) -> tuple[MemberView, ...]:
    view = replication.replica.view()
    addresses = {name: replication.knowledge.address_of(name) for name in replication.knowledge.membership.members}
    addresses[view.name] = own_address or addresses.get(view.name, "")
    peers = {peer.name: peer for peer in view.peers}
    for name in (*peers, *view.observers):
        addresses.setdefault(name, replication.knowledge.address_of(name))
    views = (
        _own(view, addresses[name], in_sync=view.role is Role.ROOT or replication.in_step)
        if name == view.name
        else _other(replication, journal, view, name, addresses[name], peers.get(name))
        for name in sorted(addresses)
    )
    return tuple(structs.replace(member, connections=replication.knowledge.loads.of(member.name)) for member in views)


def _own(view: ReplicaView, address: str, *, in_sync: bool) -> MemberView:
    return MemberView(view.name, OWN_ROLES[view.role], address, in_sync, view.last_index, view.commit_index, 0)


def _other(
    replication: Replication, journal: Journal, view: ReplicaView, name: str, address: str, peer: PeerView | None
) -> MemberView:
    linked = name in replication.linked
    if peer is None:
        role = ROOT if name == view.root else BACKUP if linked else ABSENT
        role = SECONDARY if linked and name in view.observers else role
        return MemberView(name, role, address, True if role == ROOT else None, None, None, None)
    role = SECONDARY if peer.observer else LEARNER if peer.joining or not peer.voter else BACKUP
    if not linked:
        role = ABSENT
    if peer.received_index == 0 and not linked:
        # The member has sent nothing since this root was elected.
        return MemberView(name, role, address, False, None, None, None)
    in_sync = linked and peer.in_sync
    # A secondary gets little of the log: the distance is meaningful only if it lacks some of that.
    has_all = peer.synced_index >= view.last_index or (peer.observer and in_sync)
    lag_bytes = 0 if has_all else journal.bytes_after(LogIndex(peer.synced_index))
    commit_index = min(peer.synced_index, view.commit_index)
    return MemberView(name, role, address, in_sync, peer.received_index, commit_index, lag_bytes)
