"""The connections to the root that represent clients of this broker: dials them, reads them, closes them.

The front decides which it wants and what is sent on them (`cluster.proxy`); this module knows where the root is, and
moves the bytes. They are dialed once a root is known, some at a time: after a change of the root all are wanted at
once. A tunnel to a broker that is no longer root is closed; whenever one ends, the front is notified and may want
another. They take the same path as the link to the root: if a relay has to pass that on, then these as well.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from pandomq.cluster.dialed_connection import CLOSED_BY_PEER
from pandomq.cluster.introduction import LinkRefused
from pandomq.cluster.limits import LINK_FRAME_BYTES_MAX, TUNNELS_DIALED_MAX
from pandomq.cluster.proxy.front_client import FrontClient
from pandomq.cluster.tunnel_end import ClosedByRoot, FromRoot, Held, TunnelEnd
from pandomq.cluster.vouching import vouch
from pandomq.errors import ConnectionFault
from pandomq.methods import ConnectionClose
from pandomq.node.clients.deadlines import Deadlines
from pandomq.node.output import Close, Control, Dial, PauseReading, ResumeReading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.tunnel import Tunnel
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.output import Writes
    from pandomq.node.peers.dial_target import Way
    from pandomq.node.peers.links import PeerLinks

log = logging.getLogger("pandomq")

_OF_CLIENT: Final = (ConnectionClose.class_id, ConnectionClose.method_id)
"""The method by which a root closes the client, not the tunnel."""
CLIENT_DISCONNECTED: Final = "the client has disconnected"


class Tunnels:
    __slots__ = (
        "_controls",
        "_deadlines",
        "_dialed",
        "_front",
        "_heard",
        "_links",
        "_opening",
        "_peers",
        "_root_and_term",
        "_talking",
        "_through",
    )

    def __init__(self, front: Front, links: ClientLinks, peers: PeerLinks, now_ms: int) -> None:
        self._front = front
        self._links = links
        self._peers = peers
        self._root_and_term: tuple[str, int] | None = None
        """The root and its term: the same broker in another term does not know this tunnel."""
        self._through = ""
        """The relay of the link to the root."""
        self._dialed: dict[Tunnel, None] = {}
        self._opening = 0
        """How many of them are not open yet."""
        self._controls: list[Control] = []
        self._talking: dict[Tunnel, None] = {}
        self._heard: dict[Tunnel, None] = {}
        """Tunnels whose reading may have to be paused or resumed: bytes have come, or it was paused before."""
        self._deadlines: Deadlines[Tunnel] = Deadlines(now_ms)

    def __len__(self) -> int:
        return len(self._dialed)

    @property
    def next_deadline_ms(self) -> int:
        return self._deadlines.next_ms

    # Targets.

    def leads_to_root(self, tunnel: Tunnel | None) -> bool:
        """It was dialed to the current root, as last passed to `turn`, and is not known to be lost."""
        return tunnel in self._dialed

    def turn(self, root: str | None, term: int, now_ms: int) -> None:
        """To be called at the start of each step. Without a root, open tunnels stay."""
        for tunnel in self._deadlines.take_due(now_ms):
            self._tick(tunnel, now_ms)
        if root is None:
            return
        if (root, term) != self._root_and_term:
            self._root_and_term = (root, term)
            for tunnel in list(self._dialed):
                self._end(tunnel, f"the root is {root}, no longer {tunnel.root}")
            self._front.root_changed()
        self._follow(self._peers.way_to(root))

    def open_wanted(self, root: str | None) -> None:
        """To be called at the end of each step. Without a root nothing is dialed."""
        wanted = self._front.wanted
        if root is None or not wanted:
            return
        way = self._peers.way_to(root)
        while wanted and self._opening < TUNNELS_DIALED_MAX and way.address:
            tunnel = wanted.pop(0)
            if not tunnel.is_over:
                self._dialed[tunnel] = None
                tunnel.owner, tunnel.root = self, root
                tunnel.address, tunnel.through = way
                if way.through:
                    self._peers.passages.begin(tunnel, root)
                self._opening += 1
                self._controls.append(Dial(tunnel))

    def _follow(self, way: Way) -> None:
        """Tunnels on another path than the link's present one are dead, though no end of file has come. But relayed
        tunnels stay when the direct path is open again."""
        if way.through == self._through:
            return
        self._through = way.through
        for tunnel in list(self._dialed) if way.through else ():
            if tunnel.through != way.through:
                self._end(tunnel, f"the root can be reached through {way.through} only")

    def _tick(self, tunnel: Tunnel, now_ms: int) -> None:
        if tunnel.gone or tunnel.end is None:
            return
        if tunnel.reading_paused:
            # Its input waits unread in the socket, because this broker does not read.
            tunnel.end.excuse()
        try:
            tunnel.end.tick(now_ms)
        except LinkRefused as refused:
            self._end(tunnel, refused.reason)
            return
        self._talking[tunnel] = None
        self._deadlines.put(tunnel, tunnel.end.due_ms)

    # Events of the connections.

    def dialed(self, tunnel: Tunnel, now_ms: int) -> None:
        hello = vouch(
            self._peers.hello(tunnel.root, tunnel.through),
            purpose=tunnel.purpose,
            user=tunnel.user,
            peer=tunnel.peer,
            properties=tunnel.properties,
            client=tunnel.number,
        )
        tunnel.end = TunnelEnd(self._peers.key, hello, tunnel.vhost, now_ms)
        self._deadlines.put(tunnel, tunnel.end.due_ms)
        self._talking[tunnel] = None

    def not_dialed(self, tunnel: Tunnel, reason: str, now_ms: int) -> None:
        self._end(tunnel, reason)

    def receive(self, tunnel: Tunnel, data: memoryview, now_ms: int) -> None:
        end = tunnel.end
        assert end is not None
        self._talking[tunnel] = None
        try:
            inputs = end.receive(data)
        except LinkRefused as refused:
            self._end(tunnel, refused.reason)
            return
        if end.let_in and not tunnel.let_in:
            tunnel.let_in = True
            self._opening -= 1
            self._deadlines.put(tunnel, end.due_ms)
            assert end.theirs is not None
            tunnel.opened(min(end.agreed.frame_max, LINK_FRAME_BYTES_MAX), end.theirs.newest)
        self._heard[tunnel] = None
        said: list[FromRoot] = []
        for item in inputs:
            match item:
                case Held(reason):
                    self._hold(tunnel, reason)
                case ClosedByRoot():
                    if said:
                        tunnel.receive(said)
                    self._closed_by_root(tunnel, item)
                    return
                case _:
                    said.append(item)
        if said:
            tunnel.receive(said)

    def resume(self, tunnel: Tunnel) -> None:
        tunnel.writing_paused = False
        self._talking[tunnel] = None

    def disconnected(self, tunnel: Tunnel, now_ms: int) -> None:
        self._end(tunnel, CLOSED_BY_PEER)

    # The end of a tunnel, or of an attempt.

    def _closed_by_root(self, tunnel: Tunnel, closed: ClosedByRoot) -> None:
        self._forget(tunnel)
        of_client = (closed.class_id, closed.method_id) == _OF_CLIENT
        # The method is not one of the client's, but shows for whom it is meant.
        fault = ConnectionFault(closed.reply_code, closed.reply_text) if of_client else ConnectionFault(*closed)
        tunnel.closed_by_root(fault, for_client=of_client)

    def _end(self, tunnel: Tunnel, reason: str) -> None:
        log.debug("tunnel to %s for %s ended: %s", tunnel.root, tunnel.peer or "the trunk", reason)
        self._forget(tunnel)
        tunnel.lost(reason)

    def _forget(self, tunnel: Tunnel) -> None:
        tunnel.gone = True
        del self._dialed[tunnel]
        if not tunnel.let_in:
            self._opening -= 1
        if tunnel.socket is not None:
            self._controls.append(Close(tunnel))
        if tunnel.blocked:
            self._hold(tunnel, "")

    def close_all(self, reason: str) -> Writes:
        """All of them end, each with a closing handshake; the front is not notified: it ends with them."""
        writes: Writes = []
        for tunnel in self._dialed:
            tunnel.gone = True
            if tunnel.end is not None:
                tunnel.end.close(reason)
                writes.append((tunnel, tunnel.end.data_to_send()))
                self._controls.append(Close(tunnel))
        self._dialed.clear()
        return writes

    # Reading and writing.

    def settle(self) -> None:
        """To be called after each batch of the front: some are no longer needed."""
        ended, self._front.ended = self._front.ended, []
        for tunnel in ended:
            if tunnel in self._dialed:
                self._close(tunnel)

    def regulate(self) -> None:
        """Pauses the reading from congested tunnels, and resumes it from others.

        To be called after all writes of a step. Nothing reports the end of a congestion, so congested tunnels are
        checked again with each step."""
        if self._heard:
            heard, self._heard = self._heard, {}
            for tunnel in heard:
                if not tunnel.gone:
                    self._set_reading(tunnel, paused=tunnel.congested)

    def _close(self, tunnel: Tunnel) -> None:
        """Output that the front has written on it is sent first."""
        if tunnel.end is not None and tunnel.let_in:
            tunnel.last_output = tunnel.session.take()
            tunnel.end.close(CLIENT_DISCONNECTED)
            self._talking[tunnel] = None
        self._forget(tunnel)

    def _set_reading(self, tunnel: Tunnel, *, paused: bool) -> None:
        if paused:
            # Checked again with each batch, until it is over.
            self._heard[tunnel] = None
        if paused is not tunnel.reading_paused:
            tunnel.reading_paused = paused
            self._controls.append(PauseReading(tunnel) if paused else ResumeReading(tunnel))

    def _hold(self, tunnel: Tunnel, reason: str) -> None:
        tunnel.blocked = bool(reason)
        link = self._link_of(tunnel)
        if link is not None and reason and not link.blocked:
            self._links.block(link, reason)
        elif link is not None and link.blocked and not reason:
            self._links.unblock(link)

    def _link_of(self, tunnel: Tunnel) -> ClientLink | None:
        holder = tunnel.holder
        return self._links.of_client.get(holder) if isinstance(holder, FrontClient) else None

    def take_writes(self, dirty: Iterable[Tunnel]) -> Writes:
        for tunnel in dirty:
            if tunnel in self._dialed:
                self._talking[tunnel] = None
        writes: Writes = []
        for tunnel in self._talking:
            end = tunnel.end
            if end is None or tunnel.writing_paused:
                # The waiting data is in its session; the client is held back by its amount.
                continue
            data = tunnel.last_output
            if tunnel.let_in and not tunnel.gone:
                data += tunnel.session.take()
                end.wrote()
            data += end.data_to_send()
            if data:
                writes.append((tunnel, data))
        self._talking.clear()
        return writes

    def take_controls(self) -> list[Control]:
        controls, self._controls = self._controls, []
        return controls
