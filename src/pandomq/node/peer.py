"""One other broker as this one sees it: the connection dialed to it, the one accepted from it, what waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pandomq.cluster.dialer import Dialer, Stage
from pandomq.cluster.limits import EARLY_BYTES_MAX, EARLY_MESSAGES_MAX, WAITING_BYTES_MAX
from pandomq.cluster.parcels import Kind, Octets, pack

if TYPE_CHECKING:
    from pandomq.cluster.hello import Hello
    from pandomq.node.link import Link


class Dialed:
    """One attempt to reach a broker, from dialing to the last byte. `socket` is the runtime's, once there is one."""

    __slots__ = ("address", "dialer", "gone", "name", "socket", "writing_paused")

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        """Of the broker that is expected there; empty if that is not known."""
        self.address = address
        self.socket: Any = None
        self.dialer: Dialer | None = None
        """Once there is a connection."""
        self.gone = False
        self.writing_paused = False

    @property
    def open(self) -> bool:
        return self.dialer is not None and self.dialer.stage is Stage.OPEN


class LinkView(NamedTuple):
    """A link as others may see it."""

    name: str
    address: str
    """Where it is dialed."""
    amqp: str
    http: str
    version: str
    state: str
    """`linked`, or what is missing and why."""
    linked: bool
    since_ms: int
    """When that became so."""
    waiting_bytes: int
    dropped: int
    """Messages that it did not get, since it did not take those before them."""


class Peer:
    __slots__ = (
        "accepted",
        "address",
        "dialed",
        "dropped",
        "early",
        "early_bytes",
        "failures",
        "hello",
        "linked",
        "name",
        "redial_ms",
        "since_ms",
        "trouble",
        "waiting",
        "waiting_bytes",
    )

    def __init__(self, name: str, address: str, now_ms: int) -> None:
        self.name = name
        self.address = address
        """Where to dial it; empty if it is not to be dialed."""
        self.dialed: Dialed | None = None
        self.accepted: Link | None = None
        """Proven, and open."""
        self.hello: Hello | None = None
        """What it last said of itself."""
        self.linked = False
        """Both directions are up."""
        self.since_ms = now_ms
        self.trouble = ""
        """Why there is no link, as far as it is known."""
        self.failures = 0
        """Attempts in a row that came to nothing."""
        self.redial_ms = now_ms
        self.waiting: list[Octets] = []
        """For its socket, which takes no more at present."""
        self.waiting_bytes = 0
        self.dropped = 0
        self.early: list[tuple[Kind, bytes]] = []
        """What it sent before this end knew that both directions are up."""
        self.early_bytes = 0

    @property
    def complete(self) -> bool:
        return self.accepted is not None and self.dialed is not None and self.dialed.open

    # What goes to it.

    def post(self, kind: Kind, data: bytes) -> list[Octets]:
        """What is to be written now."""
        assert self.dialed is not None
        if not self.dialed.writing_paused:
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

    @property
    def state(self) -> str:
        if self.linked:
            return "linked"
        halves = []
        if self.dialed is not None and self.dialed.open:
            halves.append("it does not dial this broker")
        if self.accepted is not None:
            halves.append("it dialed this broker")
        words = "half" if halves else "connecting"
        return ": ".join([words, "; ".join([*halves, *([self.trouble] if self.trouble else [])])]).removesuffix(": ")

    def view(self) -> LinkView:
        hello = self.hello
        return LinkView(
            self.name,
            self.address,
            "" if hello is None else hello.amqp,
            "" if hello is None else hello.http,
            "" if hello is None else hello.version,
            self.state,
            self.linked,
            self.since_ms,
            self.waiting_bytes,
            self.dropped,
        )
