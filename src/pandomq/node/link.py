"""One client connection, from accept to the last byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pandomq.node.proxy_header import BehindProxy

if TYPE_CHECKING:
    from pandomq.broker.client import Client
    from pandomq.cluster.acceptance import Acceptance
    from pandomq.cluster.hello import Hello
    from pandomq.node.relays import Relay
    from pandomq.wire.connection import Connection
    from pandomq.wire.inputs import Login


class Vouched(NamedTuple):
    """Whom a tunnel stands for."""

    origin: str
    """The broker that dialed it."""
    peer: str
    """The connection of its client there; of a trunk, a name of its own."""
    trunk: bool
    identity: int
    """Of that connection, among all."""


class Link(BehindProxy):
    """What the node knows of a connection. `socket` is the runtime's: the node passes it on and never touches it."""

    __slots__ = (
        "acceptance",
        "behind",
        "blocked",
        "certificate_name",
        "client",
        "connection",
        "ended",
        "gone",
        "hello",
        "local",
        "login",
        "mechanism",
        "paced",
        "reading_paused",
        "received_bytes",
        "received_count",
        "relay",
        "sent_bytes",
        "sent_count",
        "socket",
        "tls",
        "unknown",
        "vouched",
        "writing_paused",
    )

    def __init__(self, socket: Any, peer: tuple[str, int], connection: Connection) -> None:
        super().__init__(peer)
        self.socket = socket
        self.local: tuple[str, int] = ("", 0)
        """Our end."""
        self.tls = False
        self.connection = connection
        self.certificate_name: str | None = None
        """In the certificate that the client showed."""
        self.client: Client | None = None
        """Once the connection is open."""
        self.login: Login | None = None
        """Between log-in and open."""
        self.unknown = False
        """Its login was not looked at: it is only to hear where to go."""
        self.acceptance: Acceptance | None = None
        """While another broker proves that it is one."""
        self.hello: Hello | None = None
        """Of the broker at the other end, once it is proven; None for a client."""
        self.relay: Relay | None = None
        """Of one whose octets are passed on to another broker: they mean nothing here."""
        self.vouched: Vouched | None = None
        """Of a tunnel, once it is proven."""
        self.mechanism = ""
        """By which it logged in."""
        self.ended = False
        """Nothing is sent any more; the socket lingers until the client has hung up, too."""
        self.gone = False
        self.blocked = False
        """It published while an alarm was raised: it is not read from until the alarm ends."""
        self.behind = False
        """It does not take its answers: what it asked further waits, and it is not read from."""
        self.paced = False
        """It published while publishers rest for a moment: it is not read from until that is over."""
        self.reading_paused = False
        self.writing_paused = False
        """The socket's buffer is full: the client reads too slowly."""
        self.received_bytes = self.received_count = 0
        """Counted by reads and writes, not by frames."""
        self.sent_bytes = self.sent_count = 0

    @property
    def held(self) -> bool:
        """There is a reason not to read from it."""
        return self.blocked or self.behind or self.paced

    def count_received(self, size: int) -> None:
        self.received_bytes += size
        self.received_count += 1

    def count_sent(self, size: int) -> None:
        self.sent_bytes += size
        self.sent_count += 1

    @property
    def peer_name(self) -> str:
        return address_name(self.peer)

    @property
    def name(self) -> str:
        """As RabbitMQ names connections; a tunnel is named as the connection for which it stands."""
        if self.vouched is not None:
            return self.vouched.peer
        return f"{address_name(self.peer)} -> {address_name(self.local)}"

    @property
    def from_loopback(self) -> bool:
        return is_loopback(self.peer[0])


def is_loopback(host: str) -> bool:
    return host.startswith("127.") or host in ("::1", "::ffff:127.0.0.1")


def address_name(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
