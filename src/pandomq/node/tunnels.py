"""The connections to the root that stand for clients of this broker: dials them, reads them, hangs up.

The front says which it wants and what is said on them (`cluster.proxy`); here is where the root is, and how the octets
get there. They are dialed once a root is known, some at a time: after a change of the root all are wanted at once. A
tunnel to who is no longer root is given up; whatever ends one, the front hears of it and may want another. They go as
the link to the root goes: if another broker has to pass that on, then those as well.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from pandomq.cluster.introduction import LinkRefused
from pandomq.cluster.limits import LINK_FRAME_BYTES_MAX, TUNNELS_DIALED_MAX
from pandomq.cluster.proxy.front_client import FrontClient
from pandomq.cluster.tunnel_end import ClosedByRoot, FromRoot, Held, TunnelEnd
from pandomq.cluster.vouching import vouch
from pandomq.errors import ConnectionFault
from pandomq.methods import ConnectionClose
from pandomq.node.deadlines import Deadlines
from pandomq.node.dialed import CLOSED_BY_PEER, Dialed
from pandomq.node.output import Dial, HangUp, PauseReading, PeerControl, ResumeReading

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pandomq.cluster.proxy.front import Front
    from pandomq.cluster.proxy.tunnel import Tunnel
    from pandomq.node.link import Link
    from pandomq.node.links import Links
    from pandomq.node.peer_links import PeerLinks
    from pandomq.node.target import PeerWrites, Way

log = logging.getLogger("pandomq")

_OF_CLIENT: Final = (ConnectionClose.class_id, ConnectionClose.method_id)
"""How a root says that it closes the client, not the way to it."""
GOOD_BYE: Final = "the client has gone"


class DialedTunnel(Dialed):
    __slots__ = ("end", "held", "opened", "parting", "reading_paused", "root", "tunnel")

    def __init__(self, owner: Tunnels, tunnel: Tunnel, root: str, way: Way) -> None:
        super().__init__(owner, *way)
        self.tunnel = tunnel
        self.root = root
        """Who was root when it was dialed."""
        self.end: TunnelEnd | None = None
        """Once there is a connection."""
        self.opened = False
        self.held = False
        """The root has said that it holds the client back."""
        self.reading_paused = False
        self.parting = b""
        """Its last words, before the good-bye."""


class Tunnels:
    __slots__ = (
        "_controls",
        "_deadlines",
        "_dialed",
        "_front",
        "_heard",
        "_links",
        "_office",
        "_opening",
        "_peers",
        "_talking",
        "_through",
    )

    def __init__(self, front: Front, links: Links, peers: PeerLinks, now_ms: int) -> None:
        self._front = front
        self._links = links
        self._peers = peers
        self._office: tuple[str, int] | None = None
        """Who is root, and in which term: the same broker in another one knows nothing of this."""
        self._through = ""
        """By way of whom the link to the root goes."""
        self._dialed: dict[Tunnel, DialedTunnel] = {}
        self._opening = 0
        """Of those, how many are not open yet."""
        self._controls: list[PeerControl] = []
        self._talking: dict[DialedTunnel, None] = {}
        self._heard: dict[DialedTunnel, None] = {}
        """What may not be read from, or may again: something has come on it, or it was so before."""
        self._deadlines: Deadlines[DialedTunnel] = Deadlines(now_ms)

    def __len__(self) -> int:
        return len(self._dialed)

    @property
    def next_deadline_ms(self) -> int:
        return self._deadlines.next_ms

    # Where to.

    def leads_to_root(self, tunnel: Tunnel | None) -> bool:
        """It was dialed to who is root now, as far as `turn` was told, and is not known to be lost."""
        return tunnel in self._dialed

    def turn(self, root: str | None, term: int, now_ms: int) -> None:
        """To be called with each step. Without a root nothing is dialed, and what is open stays."""
        for dialed in self._deadlines.take_due(now_ms):
            self._tick(dialed, now_ms)
        if root is None:
            return
        if (root, term) != self._office:
            self._office = (root, term)
            for dialed in list(self._dialed.values()):
                self._end(dialed, f"the root is {root}, no longer {dialed.root}")
            self._front.root_changed()
        way = self._peers.way_to(root)
        self._follow(way)
        wanted = self._front.wanted
        while wanted and self._opening < TUNNELS_DIALED_MAX and way.address:
            tunnel = wanted.pop(0)
            if not tunnel.gone:
                dialed = self._dialed[tunnel] = DialedTunnel(self, tunnel, root, way)
                if way.through:
                    self._peers.passages.begin(dialed, root)
                self._opening += 1
                self._controls.append(Dial(dialed))

    def _follow(self, way: Way) -> None:
        """Those that go another way than the link does not any more are dead, though nobody has noticed. But what goes
        by way of another broker stays when the direct way is open again."""
        if way.through == self._through:
            return
        self._through = way.through
        for dialed in list(self._dialed.values()) if way.through else ():
            if dialed.through != way.through:
                self._end(dialed, f"the root is reached by way of {way.through} only")

    def _tick(self, dialed: DialedTunnel, now_ms: int) -> None:
        if dialed.gone or dialed.end is None:
            return
        if dialed.reading_paused:
            # What it says waits unread in the socket, because we asked for it.
            dialed.end.excuse()
        try:
            dialed.end.tick(now_ms)
        except LinkRefused as refused:
            self._end(dialed, refused.reason)
            return
        self._talking[dialed] = None
        self._deadlines.put(dialed, dialed.end.due_ms)

    # What the runtime reports.

    def dialed(self, dialed: DialedTunnel, now_ms: int) -> None:
        tunnel = dialed.tunnel
        hello = vouch(
            self._peers.hello(dialed.root, dialed.through),
            purpose=tunnel.purpose,
            user=tunnel.user,
            peer=tunnel.peer,
            properties=tunnel.properties,
            client=tunnel.number,
        )
        dialed.end = TunnelEnd(self._peers.key, hello, tunnel.vhost, now_ms)
        self._deadlines.put(dialed, dialed.end.due_ms)
        self._talking[dialed] = None

    def not_dialed(self, dialed: DialedTunnel, reason: str, now_ms: int) -> None:
        self._end(dialed, reason)

    def receive(self, dialed: DialedTunnel, data: memoryview, now_ms: int) -> None:
        end, tunnel = dialed.end, dialed.tunnel
        assert end is not None
        self._talking[dialed] = None
        try:
            inputs = end.receive(data)
        except LinkRefused as refused:
            self._end(dialed, refused.reason)
            return
        if end.let_in and not dialed.opened:
            dialed.opened = True
            self._opening -= 1
            self._deadlines.put(dialed, end.due_ms)
            tunnel.opened(min(end.agreed.frame_max, LINK_FRAME_BYTES_MAX))
        self._heard[dialed] = None
        said: list[FromRoot] = []
        for item in inputs:
            match item:
                case Held(reason):
                    self._hold(dialed, reason)
                case ClosedByRoot():
                    if said:
                        tunnel.receive(said)
                    self._closed_by_root(dialed, item)
                    return
                case _:
                    said.append(item)
        if said:
            tunnel.receive(said)

    def resume(self, dialed: DialedTunnel) -> None:
        dialed.writing_paused = False
        self._talking[dialed] = None

    def lost(self, dialed: DialedTunnel, now_ms: int) -> None:
        self._end(dialed, CLOSED_BY_PEER)

    # The end of one, or of the attempt at one.

    def _closed_by_root(self, dialed: DialedTunnel, closed: ClosedByRoot) -> None:
        self._forget(dialed)
        of_client = (closed.class_id, closed.method_id) == _OF_CLIENT
        # That is no method of the client's, but says whom it is for.
        fault = ConnectionFault(closed.reply_code, closed.reply_text) if of_client else ConnectionFault(*closed)
        dialed.tunnel.closed_by_root(fault, for_client=of_client)

    def _end(self, dialed: DialedTunnel, reason: str) -> None:
        log.debug("no tunnel to %s for %s: %s", dialed.root, dialed.tunnel.peer or "its trunk", reason)
        self._forget(dialed)
        dialed.tunnel.lost(reason)

    def _forget(self, dialed: DialedTunnel) -> None:
        dialed.gone = True
        del self._dialed[dialed.tunnel]
        if not dialed.opened:
            self._opening -= 1
        if dialed.socket is not None:
            self._controls.append(HangUp(dialed))
        if dialed.held:
            self._hold(dialed, "")

    def part(self, reason: str) -> PeerWrites:
        """All of them end, each with a good-bye; the front is not told: it ends with them."""
        writes: PeerWrites = []
        for dialed in self._dialed.values():
            dialed.gone = True
            if dialed.end is not None:
                dialed.end.close(reason)
                writes.append((dialed, dialed.end.data_to_send()))
                self._controls.append(HangUp(dialed))
        self._dialed.clear()
        return writes

    # What is read and written.

    def settle(self) -> None:
        """After each batch of the front: some are no longer needed."""
        ended, self._front.ended = self._front.ended, []
        for tunnel in ended:
            dialed = self._dialed.get(tunnel)
            if dialed is not None:
                self._say_good_bye(dialed)

    def regulate(self) -> None:
        """After all was written that could be: some are not to be read from. Before, nothing says when that is over."""
        if self._heard:
            heard, self._heard = self._heard, {}
            for dialed in heard:
                if not dialed.gone:
                    self._set_reading(dialed, paused=dialed.tunnel.congested)

    def _say_good_bye(self, dialed: DialedTunnel) -> None:
        """What the front has said on it goes out first."""
        if dialed.end is not None and dialed.opened:
            dialed.parting = dialed.tunnel.session.take()
            dialed.end.close(GOOD_BYE)
            self._talking[dialed] = None
        self._forget(dialed)

    def _set_reading(self, dialed: DialedTunnel, *, paused: bool) -> None:
        if paused:
            # Asked again with each batch, until it is over.
            self._heard[dialed] = None
        if paused is not dialed.reading_paused:
            dialed.reading_paused = paused
            self._controls.append(PauseReading(dialed) if paused else ResumeReading(dialed))

    def _hold(self, dialed: DialedTunnel, reason: str) -> None:
        dialed.held = bool(reason)
        link = self._link_of(dialed)
        if link is not None and reason and not link.blocked:
            self._links.block(link, reason)
        elif link is not None and link.blocked and not reason:
            self._links.unblock(link)

    def _link_of(self, dialed: DialedTunnel) -> Link | None:
        holder = dialed.tunnel.holder
        return self._links.of_client.get(holder) if isinstance(holder, FrontClient) else None

    def take_writes(self, dirty: Iterable[Tunnel]) -> PeerWrites:
        for tunnel in dirty:
            dialed = self._dialed.get(tunnel)
            if dialed is not None:
                self._talking[dialed] = None
        writes: PeerWrites = []
        for dialed in self._talking:
            end = dialed.end
            if end is None or dialed.writing_paused:
                # What waits is in its session; the client is held back by what is there.
                continue
            data = dialed.parting
            if dialed.opened and not dialed.gone:
                data += dialed.tunnel.session.take()
                end.wrote()
            data += end.data_to_send()
            if data:
                writes.append((dialed, data))
        self._talking.clear()
        return writes

    def take_controls(self) -> list[PeerControl]:
        controls, self._controls = self._controls, []
        return controls
