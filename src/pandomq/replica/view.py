"""Views of a replica: frozen copies, for status pages, checkers and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica import lease
from pandomq.replica.members.membership import Membership
from pandomq.replica.roles.root import Root
from pandomq.replica.roles.transitions import Role

if TYPE_CHECKING:
    from pandomq.replica.core import Core
    from pandomq.replica.log.progress import Progress


class PeerView(msgspec.Struct, frozen=True):
    """The root's view of another broker."""

    name: NodeName
    voter: bool
    observer: bool
    joining: bool
    in_sync: bool
    received_index: LogIndex
    synced_index: LogIndex


class ReplicaView(msgspec.Struct, frozen=True):
    name: NodeName
    role: Role
    epoch: int
    epoch_id: str
    term: Term
    vote: NodeName | None
    root: NodeName | None
    last_index: LogIndex
    last_term: Term
    synced_index: LogIndex
    commit_index: LogIndex
    joining: bool
    """Its store was empty or in doubt, and no root has admitted it yet."""
    repairing: bool
    """Its log was corrupt and is not as long yet as it was: it votes, and is never a candidate."""
    serving: bool
    handing_over: bool
    """A root with a hand-over under way, whether it still accepts proposals or not."""
    lease_left_ms: int | None
    """For a root; None if it needs no other broker."""
    membership: Membership | None
    peers: tuple[PeerView, ...]
    """The view of the other brokers, on a root."""
    observers: tuple[NodeName, ...]
    """Linked brokers that have reported to be secondaries."""


def view_of(core: Core) -> ReplicaView:
    root = core.handlers if isinstance(core.handlers, Root) else None
    left_ms = lease_left_ms(core)
    return ReplicaView(
        name=core.name,
        role=core.handlers.role,
        epoch=core.state.epoch,
        epoch_id=core.state.epoch_id,
        term=core.term,
        vote=None if core.state.vote is None else NodeName(core.state.vote),
        root=core.root,
        last_index=core.tail.last_index,
        last_term=core.tail.last_term,
        synced_index=core.tail.synced_index,
        commit_index=core.commit_index,
        joining=core.record.joining,
        repairing=core.record.floor is not None,
        serving=root is not None and root.ready and not root.halted and (left_ms is None or left_ms > 0),
        handing_over=root is not None and root.hand_over is not None,
        lease_left_ms=left_ms,
        membership=core.record.membership,
        observers=tuple(sorted(name for name, greeting in core.greetings.items() if greeting.observer)),
        peers=() if root is None else tuple(_peer(core, root, peer) for _, peer in sorted(root.peers.items())),
    )


def lease_left_ms(core: Core) -> int | None:
    if not isinstance(core.handlers, Root) or not core.others:
        return None
    return lease.until_ms(core, core.handlers.peers) - core.now_ms


def _peer(core: Core, root: Root, peer: Progress) -> PeerView:
    return PeerView(
        name=peer.name,
        voter=peer.name in core.membership.names,
        observer=peer.observer,
        joining=peer.joining,
        in_sync=peer.in_sync or (peer.observer and root.has_told(peer)),
        received_index=peer.received_index,
        synced_index=peer.synced_index,
    )
