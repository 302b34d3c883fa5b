"""One connection that this broker dials to another one, as the runtime knows it: from dialing to the last byte."""

from __future__ import annotations

from typing import Any, Final, Protocol

CLOSED_BY_PEER: Final = "it closed the connection"


class DialedOwner(Protocol):
    """Who wanted the connection; the runtime reports what becomes of it. Each wants a step."""

    def dialed(self, dialed: Any, now_ms: int) -> None:
        """There is a connection now; `dialed.socket` is set."""

    def not_dialed(self, dialed: Any, reason: str, now_ms: int) -> None: ...

    def receive(self, dialed: Any, data: memoryview, now_ms: int) -> None:
        """From the other end. What is kept of the octets is copied."""

    def resume(self, dialed: Any) -> None:
        """Its socket takes more again."""

    def lost(self, dialed: Any, now_ms: int) -> None:
        """The socket is closed, whoever closed it."""


class Dialed:
    """`socket` is the runtime's, once there is one; the node passes it on and never touches it."""

    __slots__ = ("address", "gone", "owner", "socket", "through", "writing_paused")

    def __init__(self, owner: DialedOwner, address: str, through: str = "") -> None:
        self.owner = owner
        self.address = address
        self.through = through
        """The broker at that address, if it only passes on what is said (`passages`)."""
        self.socket: Any = None
        self.gone = False
        """The node wants to hear no more of it."""
        self.writing_paused = False
        """Set by the runtime when the socket takes no more."""
