"""What a node is told of the cluster it belongs to."""

from typing import Literal

import msgspec

from pandomq.cluster.proxy.limits import ROOT_WAIT_MS
from pandomq.replica.membership import Member
from pandomq.replica.settings import ReplicaSettings

Access = Literal["redirect", "proxy"]


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    primaries: tuple[Member, ...] = ()
    """With which the cluster begins, and where their links are dialed; none for a broker alone, or for one that joins.
    A store that knows better is believed."""
    key: bytes = b""
    """What the brokers of a cluster share, and prove to each other; empty: there are no links."""
    advertise: str = ""
    """Where clients find this broker; its peers learn it, and tell theirs."""
    links: str = ""
    """Where other brokers dial it if it is none of the primaries; if empty, at `advertise`."""
    http: str = ""
    """Where its HTTP API is for its peers; empty if it has none."""
    bootstrap: bool = False
    """A person says that the cluster begins now, with these primaries, whoever of them is there. Refused if the store
    has an id."""
    join: tuple[str, ...] = ()
    """Addresses of brokers that know the others, beside the primaries."""
    founding: bool = False
    """The cluster begins now: an empty store may begin with these primaries. Otherwise it could be one that was lost,
    and waits for a root (R21)."""
    observer: bool = False
    """It is a secondary."""
    access: Access = "redirect"
    """What becomes of clients while this broker is not the root: they hear who is, or are served in its name."""
    root_wait_ms: int = ROOT_WAIT_MS
    """How long a client that is served in the root's name waits for one (R15)."""
    replica: ReplicaSettings = ReplicaSettings()
