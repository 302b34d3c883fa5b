"""What a node is told of the cluster it belongs to."""

import msgspec

from pandomq.replica.membership import Member
from pandomq.replica.settings import ReplicaSettings


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    primaries: tuple[Member, ...] = ()
    """With which the cluster begins; none for a broker alone. A store that knows better is believed."""
    founding: bool = False
    """The cluster begins now: an empty store may begin with these primaries. Otherwise it could be one that was lost,
    and waits for a root (R21)."""
    observer: bool = False
    """It is a secondary."""
    replica: ReplicaSettings = ReplicaSettings()
