"""One other broker as this one sees it: the connection dialed to it, the one accepted from it, what waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.cluster.limits import EARLY_BYTES_MAX, EARLY_MESSAGES_MAX, WAITING_BYTES_MAX
from pandomq.cluster.parcels import Kind, Octets, pack
from pandomq.node.view_records import PeerLinkView

if TYPE_CHECKING:
    from pandomq.cluster.hello import Hello
    from pandomq.node.link import Link
    from pandomq.node.target import DialedPeer, Target


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
        """It can be published to."""
        self.accepted: Link | None = None
        """It publishes here."""
        self.hello: Hello | None = None
        """What it last said of itself, and proved."""
        self.linked = False
        """Both directions are up."""
        self.through = ""
        """While it is linked: who passes on what it says, or what is said to it; nothing if both go directly."""
        self.since_ms = now_ms
        self.waiting: list[Octets] = []
        """For its socket, which takes no more at present."""
        self.waiting_bytes = 0
        self.dropped = 0
        self.early: list[tuple[Kind, bytes]] = []
        """What it sent before this end knew that both directions are up."""
        self.early_bytes = 0

    # What goes to it.

    def post(self, kind: Kind, data: bytes) -> list[Octets]:
        """What is to be written now."""
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

    # What came from it.

    def keep(self, kind: Kind, data: bytes) -> None:
        """It came early."""
        if len(self.early) < EARLY_MESSAGES_MAX and self.early_bytes + len(data) <= EARLY_BYTES_MAX:
            self.early.append((kind, data))
            self.early_bytes += len(data)

    def take_early(self) -> list[tuple[Kind, bytes]]:
        early, self.early, self.early_bytes = self.early, [], 0
        return early

    def forget_traffic(self) -> None:
        """The link is down: whatever was under way is lost."""
        self.take_waiting()
        self.take_early()

    # What others may know.

    def state(self, trouble: str) -> str:
        """In words, with what is known of why it is not dialed."""
        if self.linked:
            return f"linked by way of {self.through}" if self.through else "linked"
        if self.dialed is not None:
            return "half: it does not dial this broker"
        words = "connecting" if self.accepted is None else "half: it dialed this broker"
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
