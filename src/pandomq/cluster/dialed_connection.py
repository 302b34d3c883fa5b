"""One connection that this broker dials to another one: from dialing to the last byte."""

from __future__ import annotations

from typing import Any, Final, Protocol

CLOSED_BY_PEER: Final = "the peer closed the connection"


class LinkOwner(Protocol):
    """The owner of a connection, accepted or dialed; the node passes its events on. Each needs a step."""

    def receive(self, link: Any, data: memoryview, now_ms: int) -> None:
        """Takes bytes from the other end, and copies those that it keeps."""

    def resume(self, link: Any) -> None:
        """The socket accepts more again."""

    def disconnected(self, link: Any, now_ms: int) -> None:
        """The socket is closed, whichever side closed it."""


class DialedOwner(LinkOwner, Protocol):
    def dialed(self, link: Any, now_ms: int) -> None:
        """Called when the connection is established; `link.socket` is set."""

    def not_dialed(self, link: Any, reason: str, now_ms: int) -> None: ...


class Dialed:
    """`socket` is the runtime's, once there is one; the node passes it on and never touches it."""

    __slots__ = ("address", "gone", "owner", "socket", "through", "writing_paused")

    owner: DialedOwner
    """Set before it is dialed, as is the address."""

    def __init__(self, address: str = "", through: str = "") -> None:
        self.address = address
        self.through = through
        """The broker at that address, if it only relays (`passages`)."""
        self.socket: Any = None
        self.gone = False
        """The node wants no more events of it."""
        self.writing_paused = False
        """The socket accepts no more for now."""

    def pause(self) -> None:
        self.writing_paused = True
