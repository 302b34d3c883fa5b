"""One broker that this one dials, and the attempts to link to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pandomq.cluster.introduction import Stage
from pandomq.node.dialed import Dialed

if TYPE_CHECKING:
    from pandomq.cluster.dialer import Dialer
    from pandomq.cluster.parcels import Octets
    from pandomq.cluster.passage import Knock
    from pandomq.node.dialed import DialedOwner

PeerWrites = list[tuple[Dialed, "Octets"]]


class Way(NamedTuple):
    """How a broker is dialed."""

    address: str
    through: str = ""
    """Who is there, if it only passes on what is said."""


class DialedPeer(Dialed):
    """One attempt to link to a broker, from dialing to the last byte."""

    __slots__ = ("dialer", "knocks", "name", "opened")

    def __init__(self, owner: DialedOwner, name: str, address: str, through: str = "", *, knocks: bool = False) -> None:
        super().__init__(owner, address, through)
        self.name = name
        """Of the broker that is expected there, or beyond; empty if that is not known."""
        self.knocks = knocks
        """It is no attempt to link, but only to see whether there could be one."""
        self.dialer: Dialer | Knock | None = None
        """Once there is a connection."""
        self.opened = False
        """It was good for something."""

    @property
    def open(self) -> bool:
        return self.dialer is not None and self.dialer.stage is Stage.OPEN


class Target:
    __slots__ = (
        "address",
        "came_through",
        "dialed",
        "dialed_ms",
        "failures",
        "knock",
        "knock_ms",
        "name",
        "redial_ms",
        "trouble",
    )

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.dialed: DialedPeer | None = None
        self.dialed_ms = self.redial_ms = 0
        """When the last attempt began, and when the next one is due."""
        self.failures = 0
        """Attempts in a row that came to nothing."""
        self.trouble = ""
        """Why the last of them did, of those by the direct way."""
        self.came_through = ""
        """The broker by way of which it has dialed this one, as it may be dialed in turn."""
        self.knock: DialedPeer | None = None
        self.knock_ms = 0
        """While it is linked by way of another: the last look at the direct way, and when the next one is due."""

    @property
    def reached(self) -> bool:
        """Directly, and what is said is heard."""
        return self.dialed is not None and self.dialed.open and not self.dialed.through
