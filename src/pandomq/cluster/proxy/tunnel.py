"""A connection to the root on which the front speaks for one client, or for its private queues.

A tunnel is for one connection: made when one is wanted, over when that is. Whoever drives the front takes tunnels from
`Front.wanted`, dials the root for each, and tells the tunnel what becomes of it; what it tells takes effect with the
next batch of the front. Octets for the root are in `session`, as those for a client are in the client's; the front's
`take_dirty` names tunnels, too. Those that are over are in `Front.ended`: what is left in the session is written, and
the connection is closed, also if it is not open yet.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from pandomq import kernel
from pandomq.cluster.proxy.lane import Lane, Listener
from pandomq.errors import ConnectionFault
from pandomq.limits import FRAME_BYTES_MIN

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_client import FrontClient
    from pandomq.methods import MethodInput

TUNNEL: Final = "tunnel"
TRUNK: Final = "trunk"
CONNECTION_FORCED: Final = 320


class Holder(Protocol):
    """Whom the tunnel is for."""

    def tunnel_opened(self) -> None: ...

    def tunnel_lost(self, reason: str) -> None:
        """There will be another one, for as long as it is needed."""

    def tunnel_refused(self, fault: ConnectionFault) -> None:
        """The root has closed it, and not because the root is another one now."""

    def take_run(self, run: "kernel.DeliveryRun | kernel.SettleRun") -> None:
        """Deliveries or confirms."""

    def take_return(self, channel: int, payload: bytes, message: kernel.Message) -> None:
        """A basic.return."""

    @property
    def congested(self) -> bool:
        """It has enough for now."""


class Tunnel:
    __slots__ = (
        "asked_count",
        "front",
        "gone",
        "holder",
        "is_open",
        "lanes",
        "number",
        "peer",
        "properties",
        "purpose",
        "session",
        "user",
        "vhost",
    )

    def __init__(
        self,
        front: "Front",
        holder: Holder,
        *,
        purpose: str,
        user: str,
        vhost: str,
        peer: str = "",
        properties: bytes = b"",
        number: int = 0,
    ) -> None:
        self.front = front
        self.holder = holder
        self.purpose = purpose
        """`tunnel` or `trunk`, as the hello says it."""
        self.user = user
        """Whom the front vouches for; a trunk has none."""
        self.vhost = vhost
        self.peer = peer
        """The client's, for the root's listings."""
        self.properties = properties
        """The client's, as a field table."""
        self.number = number
        """The client's."""
        self.is_open = False
        self.gone = False
        """Nobody needs it, or it is over."""
        self.lanes: dict[int, Lane] = {}
        self.asked_count = 0
        """What the root has not answered."""
        self.session = kernel.Session(
            front.engine, self, kernel.Routes(1), FRAME_BYTES_MIN, front.limits.outgoing_bytes_max
        )

    # What the driver says.

    def opened(self, frame_max: int) -> None:
        """connection.open-ok has come; frames may be so long (never 0)."""
        self.session.frame_max = frame_max
        self.front.note_event(self, self._open)

    def receive(self, inputs: "Sequence[kernel.DeliveryRun | kernel.SettleRun | kernel.Content | MethodInput]") -> None:
        """What an inward scanner made of octets from the root, in order: DeliveryRun, SettleRun, Content, and the other
        methods, decoded, as MethodInput. Nothing of channel 0."""
        self.front.note_event(self, lambda: self.front.take(self, inputs))

    def lost(self, reason: str) -> None:
        """It did not come about, or broke. The driver has forgotten it."""
        self.front.note_event(self, lambda: self._lose(reason))

    def closed_by_root(self, fault: ConnectionFault, *, for_client: bool = False) -> None:
        """connection.close has come, and was answered. The driver has forgotten it. 320 says that there is, or will be,
        another root; unless it is meant `for_client`."""
        if fault.reply_code == CONNECTION_FORCED and not for_client:
            self.lost(fault.reply_text)
        else:
            self.front.note_event(self, lambda: self._refuse(fault))

    @property
    def client(self) -> "FrontClient | None":
        """None of a trunk."""
        holder: Any = self.holder
        return holder if self.purpose == TUNNEL else None

    @property
    def congested(self) -> bool:
        """It is not to be read from for now: whoever it is for has enough."""
        return not self.gone and self.holder.congested

    # What the front does.

    def lane(self, number: int, listener: Listener) -> Lane:
        lane = self.lanes[number] = Lane(self, number, listener)
        return lane

    def forget(self, lane: Lane) -> None:
        if self.lanes.get(lane.number) is lane:
            del self.lanes[lane.number]

    def hang_up(self) -> None:
        """What was written so far still goes out."""
        if not self.gone:
            self.gone = True
            self.is_open = False
            self.lanes.clear()
            self.front.ended.append(self)

    def _open(self) -> None:
        self.is_open = True
        self.holder.tunnel_opened()

    def _lose(self, reason: str) -> None:
        self.hang_up()
        self.holder.tunnel_lost(reason)

    def _refuse(self, fault: ConnectionFault) -> None:
        self.hang_up()
        self.holder.tunnel_refused(fault)
