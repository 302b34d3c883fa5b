"""One client connection, from accept to the last byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandomq.broker.client import Client
    from pandomq.wire.connection import Connection
    from pandomq.wire.inputs import Login


class Link:
    """What the node knows of a connection. `socket` is the runtime's: the node passes it on and never touches it."""

    __slots__ = (
        "before",
        "blocked",
        "certificate_name",
        "client",
        "connection",
        "ended",
        "gone",
        "login",
        "peer",
        "reading_paused",
        "socket",
        "writing_paused",
    )

    def __init__(self, socket: Any, peer: tuple[str, int], connection: Connection) -> None:
        self.socket = socket
        self.peer = peer
        self.connection = connection
        self.before: bytes | None = None
        """What came of the proxy's header, until it is complete; None where no proxy stands in front."""
        self.certificate_name: str | None = None
        """In the certificate that the client showed."""
        self.client: Client | None = None
        """Once the connection is open."""
        self.login: Login | None = None
        """Between log-in and open."""
        self.ended = False
        """Nothing is sent any more; the socket lingers until the client has hung up, too."""
        self.gone = False
        self.blocked = False
        """It published while an alarm was raised: it is not read from until the alarm ends."""
        self.reading_paused = False
        self.writing_paused = False
        """The socket's buffer is full: the client reads too slowly."""

    @property
    def peer_name(self) -> str:
        host, port = self.peer
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def from_loopback(self) -> bool:
        host = self.peer[0]
        return host.startswith("127.") or host in ("::1", "::ffff:127.0.0.1")
