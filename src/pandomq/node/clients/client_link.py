"""One client connection, from accept to the last byte."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pandomq.node.clients.proxy_header import BehindProxy

if TYPE_CHECKING:
    from pandomq.broker.client import Client
    from pandomq.cluster.acceptance import Acceptance
    from pandomq.cluster.dialed_connection import LinkOwner
    from pandomq.cluster.hello import Hello
    from pandomq.wire.connection import Connection
    from pandomq.wire.inputs import Login


class Vouched(NamedTuple):
    """The client for which a tunnel stands."""

    origin: str
    """The broker that dialed the tunnel."""
    life: str
    """The life of that broker in which it dialed."""
    peer: str
    """The connection of its client there; for a trunk, a name of its own."""
    trunk: bool
    identity: int
    """The identity of that connection, among all."""


class ClientLink(BehindProxy):
    """A node's state of a connection. `socket` is the runtime's: the node passes it on and never touches it."""

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
        "owner",
        "paced",
        "read_failed",
        "reading_paused",
        "received_bytes",
        "received_count",
        "sent_bytes",
        "sent_count",
        "socket",
        "tls",
        "unknown",
        "vouched",
        "waits_turn",
        "writing_paused",
    )

    owner: LinkOwner
    """The receiver of its events."""

    def __init__(self, socket: Any, peer: tuple[str, int], connection: Connection) -> None:
        super().__init__(peer)
        self.socket = socket
        self.local: tuple[str, int] = ("", 0)
        """The local address."""
        self.tls = False
        self.connection = connection
        self.certificate_name: str | None = None
        """The name in the certificate that the client showed."""
        self.client: Client | None = None
        """Set once the connection is open."""
        self.login: Login | None = None
        """Set between login and open."""
        self.unknown = False
        """The login was not checked: the client will only be redirected."""
        self.acceptance: Acceptance | None = None
        """Set while another broker proves its identity."""
        self.hello: Hello | None = None
        """The hello of the broker at the other end, once it is proven; None for a client."""
        self.vouched: Vouched | None = None
        """Set for a tunnel, once it is proven."""
        self.mechanism = ""
        """The mechanism by which it logged in."""
        self.ended = False
        """Whether nothing is sent any more; the socket lingers until the client has closed its side, too."""
        self.gone = False
        self.read_failed = False
        """An exception was raised while a read of it was handled. Input after that read is not handled: a commit must
        not be separated from its publishes."""
        self.blocked = False
        """The client published while an alarm was raised: it is not read from until the alarm ends."""
        self.behind = False
        """The client does not read its answers: its further requests wait, and it is not read from."""
        self.paced = False
        """The client published while publishers pause for a moment: it is not read from until that is over."""
        self.waits_turn = False
        """Clients of its user have sent much that is slow to decode: it is not read from until its turn comes."""
        self.reading_paused = False
        self.writing_paused = False
        """The socket's buffer is full: the client reads too slowly."""
        self.received_bytes = self.received_count = 0
        """Counted by reads and writes, not by frames."""
        self.sent_bytes = self.sent_count = 0

    @property
    def held(self) -> bool:
        """Whether there is a reason not to read from the client."""
        return self.blocked or self.behind or self.paced or self.waits_turn

    def pause(self) -> None:
        """The socket accepts no more for now."""
        self.writing_paused = True
        if self.client is not None:
            self.client.session.pause()

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
        """RabbitMQ's form of a connection's name; a tunnel has the name of the connection for which it stands."""
        if self.vouched is not None:
            return self.vouched.peer
        return f"{address_name(self.peer)} -> {address_name(self.local)}"


def address_name(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
