"""One other broker from this broker's view: the connection dialed to it, the one accepted from it, waiting output, and
the events on its link."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pandomq.cluster.limits import EARLY_BYTES_MAX, EARLY_MESSAGES_MAX, WAITING_BYTES_MAX
from pandomq.cluster.peer_messages import Octets, PeerMessageKind, pack
from pandomq.node.views.records import PeerLinkView

if TYPE_CHECKING:
    from pandomq.cluster.hello import Hello
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.peers.dial_target import DialedPeer, Target


class Up(NamedTuple):
    name: str


class Down(NamedTuple):
    name: str
    by_peer: bool


class Mail(NamedTuple):
    name: str
    kind: PeerMessageKind
    data: bytes


class Peer:
    __slots__ = (
        "accepted",
        "dialed",
        "dropped",
        "early",
        "early_bytes",
        "hello",
        "linked",
        "name",
        "since_ms",
        "through",
        "waiting",
        "waiting_bytes",
    )

    def __init__(self, name: str, now_ms: int) -> None:
        self.name = name
        self.dialed: DialedPeer | None = None
        """The connection on which this broker can publish to the peer."""
        self.accepted: ClientLink | None = None
        """The peer publishes here."""
        self.hello: Hello | None = None
        """Its last hello, which it proved."""
        self.linked = False
        """Both directions are up."""
        self.through = ""
        """While it is linked: the broker that relays what one of the two sends; empty if both directions are direct."""
        self.since_ms = now_ms
        self.waiting: list[Octets] = []
        """Output for its socket, which accepts no more at present."""
        self.waiting_bytes = 0
        self.dropped = 0
        self.early: list[tuple[PeerMessageKind, bytes]] = []
        """Messages that it sent before this end knew that both directions are up."""
        self.early_bytes = 0

    # Output.

    def post(self, kind: PeerMessageKind, data: bytes) -> list[Octets]:
        """Returns what is to be written now."""
        assert self.dialed is not None
        if not self.dialed.writing_paused and not self.waiting:
            return list(pack(kind, data))
        if self.waiting_bytes > WAITING_BYTES_MAX:
            self.dropped += 1
            return []
        self.waiting += pack(kind, data)
        self.waiting_bytes += len(data)
        return []

    def take_waiting(self) -> list[Octets]:
        waiting, self.waiting, self.waiting_bytes = self.waiting, [], 0
        return waiting

    # Input.

    def keep(self, kind: PeerMessageKind, data: bytes) -> None:
        """Keeps a message that came early."""
        if len(self.early) < EARLY_MESSAGES_MAX and self.early_bytes + len(data) <= EARLY_BYTES_MAX:
            self.early.append((kind, data))
            self.early_bytes += len(data)

    def take_early(self) -> list[tuple[PeerMessageKind, bytes]]:
        early, self.early, self.early_bytes = self.early, [], 0
        return early

    def forget_traffic(self) -> None:
        """The link is down: messages under way are lost."""
        self.take_waiting()
        self.take_early()

    # The state for other components.

    def state(self, trouble: str) -> str:
        """The state as text, with the reason why it is not dialed, if known."""
        if self.linked:
            return f"linked through {self.through}" if self.through else "linked"
        if self.dialed is not None:
            return "one-way: the peer does not connect to this broker"
        words = "connecting" if self.accepted is None else "one-way: this broker does not connect to the peer"
        return f"{words}: {trouble}" if trouble else words

    def view(self, target: Target | None) -> PeerLinkView:
        hello = self.hello
        return PeerLinkView(
            self.name,
            "" if target is None else target.address,
            "" if hello is None else hello.amqp,
            "" if hello is None else hello.http,
            "" if hello is None else hello.version,
            self.state("" if target is None else target.trouble),
            self.linked,
            self.since_ms,
            self.waiting_bytes,
            self.dropped,
        )
