"""A connection to the root on which the front acts for one client, or for its private queues.

A tunnel is one connection: it is created when one is wanted, and ends with it. The driver of the front takes tunnels
from `Front.wanted`, dials the root with each, and reports the result to the tunnel; reports take effect with the next
batch of the front. Bytes for the root are in `session`, as those for a client are in the client's; the front's
`take_dirty` names tunnels, too. Tunnels that the front no longer uses are in `Front.ended`: the driver writes what is
left in the session, and closes the connection, also if it is not open yet.
"""

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from pandomq import kernel
from pandomq.broker.log.places import PLACE
from pandomq.cluster.dialed_connection import Dialed
from pandomq.cluster.hello import VERSION
from pandomq.cluster.proxy.lane import LaneListener, TunnelLane
from pandomq.errors import ConnectionFault
from pandomq.kernel.constants import BASIC, GET_OK
from pandomq.limits import FRAME_BYTES_MIN
from pandomq.methods import BasicReturn, MethodInput
from pandomq.wire.codec import decode_method

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.front_client import FrontClient
    from pandomq.cluster.tunnel_end import TunnelEnd

TUNNEL: Final = "tunnel"
TRUNK: Final = "trunk"
CONNECTION_FORCED: Final = 320

_GET_OK: Final = struct.pack(">HH", BASIC, GET_OK)


class Holder(Protocol):
    """The user of a tunnel."""

    def tunnel_opened(self) -> None: ...

    def tunnel_lost(self, reason: str) -> None:
        """Called by the tunnel when its connection was not established, or broke. The front dials another tunnel for as
        long as the holder needs one."""

    def tunnel_refused(self, fault: ConnectionFault) -> None:
        """Called by the tunnel when the root has closed it, for another reason than a change of the root. The holder
        gets no other tunnel."""

    def take_run(self, run: "kernel.DeliveryRun | kernel.SettleRun") -> None:
        """Called by the tunnel with deliveries or confirms of the root."""

    def take_return(self, channel: int, payload: bytes, message: kernel.Message) -> None:
        """Called by the tunnel with a basic.return of the root."""

    @property
    def congested(self) -> bool:
        """Whether the holder can take no more for now."""


class Tunnel(Dialed):
    __slots__ = (
        "asked_count",
        "blocked",
        "end",
        "front",
        "holder",
        "is_open",
        "is_over",
        "lanes",
        "last_output",
        "let_in",
        "number",
        "peer",
        "properties",
        "purpose",
        "reading_paused",
        "root",
        "session",
        "user",
        "version",
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
        super().__init__()
        self.front = front
        self.holder = holder
        self.purpose = purpose
        """`tunnel` or `trunk`, as in the hello."""
        self.user = user
        """The user that the front vouches for; a trunk has none."""
        self.vhost = vhost
        self.peer = peer
        """The client's peer address, for the root's listings."""
        self.properties = properties
        """The client's properties, as a field table."""
        self.number = number
        """The client's number."""
        self.version = 0
        """The root's version of the link protocol."""
        self.is_open = False
        self.is_over = False
        """The front no longer uses it: it is not needed any more, or has ended."""
        self.lanes: dict[int, TunnelLane] = {}
        self.asked_count = 0
        """Requests that the root has not answered."""
        self.session = kernel.Session(
            front.engine, self, kernel.Routes(1), FRAME_BYTES_MIN, front.limits.outgoing_bytes_max
        )
        # The rest is the driver's.
        self.root = ""
        """The root when it was dialed."""
        self.end: TunnelEnd | None = None
        """The dialing end, once there is a connection."""
        self.let_in = False
        """The root has accepted the tunnel."""
        self.blocked = False
        """The root has sent connection.blocked for the client."""
        self.reading_paused = False
        self.last_output = b""
        """Its last output, before it is closed."""

    # Reports of the driver.

    def opened(self, frame_max: int, version: int = VERSION) -> None:
        """Called by the driver when connection.open-ok has arrived: frames may have up to `frame_max` bytes (never 0),
        and the root supports the link protocol up to this version."""
        self.session.frame_max = frame_max
        self.version = version
        self.front.note_event(self, self._open)

    def receive(self, inputs: "Sequence[kernel.DeliveryRun | kernel.SettleRun | kernel.Content | MethodInput]") -> None:
        """Takes what an inward scanner made of bytes from the root, in order: DeliveryRun, SettleRun, Content, and the
        other methods, decoded, as MethodInput. Nothing of channel 0."""
        self.front.note_event(self, lambda: self._take(inputs))

    def lost(self, reason: str) -> None:
        """Called by the driver when the connection was not established, or broke; the driver has dropped it."""
        self.front.note_event(self, lambda: self._lose(reason))

    def closed_by_root(self, fault: ConnectionFault, *, for_client: bool = False) -> None:
        """Called by the driver when the root has sent connection.close; the driver has answered it and dropped the
        tunnel. The code 320 means that there is, or will be, another root, unless the fault is meant `for_client`."""
        if fault.reply_code == CONNECTION_FORCED and not for_client:
            self.lost(fault.reply_text)
        else:
            self.front.note_event(self, lambda: self._refuse(fault))

    @property
    def client(self) -> "FrontClient | None":
        """The client that holds the tunnel; None for a trunk."""
        holder: Any = self.holder
        return holder if self.purpose == TUNNEL else None

    @property
    def congested(self) -> bool:
        """The driver must not read from it for now: its holder can take no more."""
        return not self.is_over and self.holder.congested

    # Requests of the front.

    def lane(self, number: int, listener: LaneListener) -> TunnelLane:
        lane = self.lanes[number] = TunnelLane(self, number, listener)
        return lane

    def forget(self, lane: TunnelLane) -> None:
        if self.lanes.get(lane.number) is lane:
            del self.lanes[lane.number]

    def hang_up(self) -> None:
        """Bytes that were written so far are still sent."""
        if not self.is_over:
            self.is_over = True
            self.is_open = False
            self.lanes.clear()
            self.front.ended.append(self)

    def _open(self) -> None:
        self.is_open = True
        self.holder.tunnel_opened()

    def _take(self, inputs: "Sequence[kernel.DeliveryRun | kernel.SettleRun | kernel.Content | MethodInput]") -> None:
        """Handles what the root has sent."""
        for item in inputs:
            if self.is_over:
                return
            if isinstance(item, MethodInput):
                lane = self.lanes.get(item.channel)
                if lane is not None:
                    lane.hear(item.method)
            elif isinstance(item, kernel.Content):
                self._take_content(item)
            else:
                self.holder.take_run(item)
            self.front.faults.finish()

    def _take_content(self, content: "kernel.Content") -> None:
        lane = self.lanes.get(content.channel)
        payload, message = content.payload, content.message
        queue_id = 0
        if payload.startswith(_GET_OK):
            queue_id, message.number, message.producer = PLACE.unpack(payload[-PLACE.size :])
            payload = payload[: -PLACE.size]
        method = decode_method(payload)
        if isinstance(method, BasicReturn):
            self.holder.take_return(content.channel, payload, message)
        elif lane is not None:
            lane.taken_from = queue_id
            lane.hear(method, message)

    def _lose(self, reason: str) -> None:
        self.hang_up()
        self.holder.tunnel_lost(reason)

    def _refuse(self, fault: ConnectionFault) -> None:
        self.hang_up()
        self.holder.tunnel_refused(fault)
