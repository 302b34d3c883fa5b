"""A node's settings for the cluster that it belongs to."""

from typing import Literal

import msgspec

from pandomq.cluster.proxy.limits import ROOT_WAIT_MS
from pandomq.replica.members.membership import Member
from pandomq.replica.settings import ReplicaSettings

Access = Literal["redirect", "proxy"]


class ClusterSettings(msgspec.Struct, frozen=True, kw_only=True):
    primaries: tuple[Member, ...] = ()
    """The primaries with which the cluster begins, and where their links are dialed; none for a broker alone, or for
    one that joins. If the store has newer information, that applies."""
    key: bytes = b""
    """The key that the brokers of a cluster share, and prove to each other; empty: there are no links."""
    advertise: str = ""
    """The address at which clients find this broker; its peers learn it, and pass it on to their clients."""
    links: str = ""
    """The address at which other brokers dial it if it is none of the primaries; if empty, `advertise`."""
    http: str = ""
    """The address of its HTTP API for its peers; empty if it has none."""
    bootstrap: bool = False
    """The operator declares that the cluster begins now, with these primaries, whichever of them are up. Refused if the
    store has an id."""
    join: tuple[str, ...] = ()
    """Addresses of brokers that know the others, beside the primaries."""
    founding: bool = False
    """The cluster begins now: an empty store may begin with these primaries. Otherwise the store could be one that was
    lost, and the broker waits for a root (R21)."""
    observer: bool = False
    """The broker is a secondary."""
    access: Access = "redirect"
    """The treatment of clients while this broker is not the root: they are redirected to the root, or a front serves
    them."""
    root_wait_ms: int = ROOT_WAIT_MS
    """How long a client of the front waits for a root (R15)."""
    replica: ReplicaSettings = ReplicaSettings()
