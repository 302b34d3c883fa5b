"""What others may know of a replica: frozen copies, for status pages, checkers and tests."""

from __future__ import annotations

import msgspec

from pandomq.ids import LogIndex, NodeName, Term
from pandomq.replica.membership import Membership
from pandomq.replica.roles.transitions import Role


class PeerView(msgspec.Struct, frozen=True):
    """How a root sees another broker."""

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
    first_index: LogIndex
    last_index: LogIndex
    last_term: Term
    synced_index: LogIndex
    commit_index: LogIndex
    joining: bool
    """Its store was empty or in doubt, and no root has admitted it yet."""
    repairing: bool
    """Its log was corrupt and is not as long yet as it was: it votes, and does not stand."""
    serving: bool
    lease_left_ms: int | None
    """Of a root; None if it needs nobody else."""
    membership: Membership | None
    peers: tuple[PeerView, ...]
    """Of a root."""
