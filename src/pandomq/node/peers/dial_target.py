"""One broker that this one dials, and the attempts to link to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pandomq.cluster.dialed_connection import Dialed
from pandomq.cluster.introduction import IntroductionStage

if TYPE_CHECKING:
    from pandomq.cluster.dialed_connection import DialedOwner
    from pandomq.cluster.dialer import Dialer
    from pandomq.cluster.passage import Knock


class Way(NamedTuple):
    """The path by which a broker is dialed."""

    address: str
    through: str = ""
    """The relay at that address, if there is one."""


class DialedPeer(Dialed):
    """One attempt to link to a broker, from dialing to the last byte."""

    __slots__ = ("dialer", "knocks", "name", "opened")

    def __init__(self, owner: DialedOwner, name: str, address: str, through: str = "", *, knocks: bool = False) -> None:
        super().__init__(address, through)
        self.owner = owner
        self.name = name
        """The name of the broker that is expected there, or beyond; empty if that is not known."""
        self.knocks = knocks
        """Whether this is no attempt to link, but only a check whether a link is possible."""
        self.dialer: Dialer | Knock | None = None
        """The dialing end of the connection, once there is one."""
        self.opened = False
        """The connection was of use."""

    @property
    def open(self) -> bool:
        return self.dialer is not None and self.dialer.stage is IntroductionStage.OPEN


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
        """The time when the last attempt began, and the time when the next one is due."""
        self.failures = 0
        """Failed attempts in a row."""
        self.trouble = ""
        """The reason of the last failure among direct attempts."""
        self.came_through = ""
        """The broker through which it has dialed this one, as it may be dialed in turn."""
        self.knock: DialedPeer | None = None
        self.knock_ms = 0
        """While it is linked through another broker: the last check of the direct path, and when the next one is
        due."""

    @property
    def reached(self) -> bool:
        """The link is direct, and its messages arrive."""
        return self.dialed is not None and self.dialed.open and not self.dialed.through
