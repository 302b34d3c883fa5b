"""All client connections of a node: which there are, whose turn it is to speak, and what their sockets are asked to do.

Knows nothing of what is said; who handles inputs is the node, who lets clients in is the reception.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from pandomq import limits
from pandomq.node.deadlines import Deadlines
from pandomq.node.handshakes import Handshakes
from pandomq.node.output import Abort, Close, Control, PauseReading, ResumeReading
from pandomq.wire.pulse import NEVER_MS, Tick
from pandomq.wire.states import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pandomq.broker.client import Client
    from pandomq.errors import ConnectionFault
    from pandomq.node.incomplete import IncompleteMessages
    from pandomq.node.link import Link

log = logging.getLogger("pandomq")

_TOO_SLOW: Final = "it did not finish the handshake in time"
_OVERDUE: Final = {
    State.RUNNING: "no sign of life from it for two heartbeats",
    State.ENDING: "no sign of life from it for two heartbeats",
    State.CLOSING: "it did not answer connection.close in time",
}

Writes = list[tuple["Link", bytes]]


class Links:
    __slots__ = (
        "_deadlines",
        "_dropped_peers",
        "_paced",
        "_resting",
        "_resumed",
        "_talking",
        "controls",
        "handshakes",
        "incomplete",
        "of_client",
        "present",
        "tunnels",
    )

    def __init__(self, incomplete: IncompleteMessages, now_ms: int) -> None:
        self.incomplete = incomplete
        self.handshakes = Handshakes()
        self.present: dict[Link, None] = {}
        self.tunnels: dict[Link, None] = {}
        """Those among them that other brokers have dialed for their clients."""
        self.of_client: dict[Client, Link] = {}
        self.controls: list[Control] = []
        self._talking: dict[Link, None] = {}
        self._resumed: list[Link] = []
        self._resting = False
        self._paced: list[Link] = []
        self._dropped_peers: list[Link] = []
        self._deadlines: Deadlines[Link] = Deadlines(now_ms)

    # Coming and going.

    def add(self, link: Link) -> None:
        self.present[link] = None
        self.watch(link)

    def let_pass(self, link: Link) -> None:
        """It is another broker, not one of the clients; it is watched, and not counted."""
        del self.present[link]
        self.handshakes.forget(link)

    def let_tunnel_pass(self, link: Link) -> None:
        """It is one of the clients, but of another broker, and counted there."""
        self.tunnels[link] = None

    @property
    def count(self) -> int:
        """Of those who have come to this broker, let in or not."""
        return len(self.present) - len(self.tunnels)

    def take_dropped_peers(self) -> list[Link]:
        dropped, self._dropped_peers = self._dropped_peers, []
        return dropped

    def drop(self, link: Link, why: str, now_ms: int) -> None:
        log.warning("connection %s dropped: %s", link.peer_name, why)
        self.controls.append(Abort(link))
        self.forget(link, now_ms)
        if link.hello is not None:
            self._dropped_peers.append(link)

    def forget(self, link: Link, now_ms: int) -> None:
        link.gone = True
        link.connection.hang_up()
        if link.client is not None:
            self.let_go(link, now_ms)
        self.present.pop(link, None)
        self.tunnels.pop(link, None)
        self._talking.pop(link, None)
        self.incomplete.forget(link)
        self.handshakes.forget(link)

    def let_go(self, link: Link, now_ms: int) -> None:
        """The broker's client goes; the link may stay to say good-bye."""
        assert link.client is not None
        link.client.broker.disconnect(link.client, now_ms)
        del self.of_client[link.client]
        link.client = None
        # Whatever it was kept waiting for, it is not any more; its close-ok or its end of file is to be read.
        link.blocked = link.behind = link.paced = False
        self._set_reading(link, paused=False)

    # Handshakes.

    def line_up(self, link: Link, data: memoryview) -> None:
        """What it says waits for its turn."""
        if not self.handshakes.put(link, data):
            self._set_reading(link, paused=True)

    def take_turns(self) -> list[tuple[Link, bytes]]:
        turns = self.handshakes.take()
        for link, _ in turns:
            if not link.gone:
                self._set_reading(link, paused=link.held)
        return turns

    # Time.

    def watch(self, link: Link) -> None:
        """To be called whenever the connection's next deadline has moved forward."""
        if link.connection.due_ms != NEVER_MS:
            self._deadlines.put(link, link.connection.due_ms)

    def tick(self, now_ms: int) -> None:
        dropped = 0
        for link in self._deadlines.take_due(now_ms):
            if link.gone or link.ended:
                continue
            if dropped >= limits.DROPS_PER_TICK_MAX:
                # Very many may be late at the same time, and to close a socket takes some.
                self._deadlines.put(link, now_ms)
                continue
            if self.handshakes.waits(link):
                # It is this broker that keeps it waiting.
                link.connection.due_ms = now_ms + limits.CROWDED_HANDSHAKE_MS_MAX
                self.watch(link)
                continue
            if link.blocked:
                # Its heartbeats wait unread in the socket, because we asked for it. Who is not read from because it
                # reads no answers has only itself to blame.
                link.connection.excuse()
            state = link.connection.state
            if link.connection.tick(now_ms) is Tick.DROP:
                self.drop(link, _OVERDUE.get(state, _TOO_SLOW), now_ms)
                dropped += 1
                continue
            self.talk(link)
            self.watch(link)
        for link in self.handshakes.idlers(now_ms):
            self.drop(link, _TOO_SLOW, now_ms)

    @property
    def next_deadline_ms(self) -> int:
        return self._deadlines.next_ms

    # Sockets that take no more, or from which nothing is taken.

    def pause(self, link: Link) -> None:
        link.writing_paused = True
        if link.client is not None:
            link.client.session.pause()

    def resume(self, link: Link) -> None:
        link.writing_paused = False
        # Who takes what we send is alive, though what it says may wait unread.
        link.connection.excuse()
        if link.client is not None:
            link.client.session.resume()
            self._resumed.append(link)

    def block(self, link: Link, reason: str) -> None:
        """It published during an alarm: it hears so, and TCP holds it back."""
        link.blocked = True
        link.connection.block(reason)
        self.talk(link)
        self._set_reading(link, paused=True)

    def unblock(self, link: Link) -> None:
        link.blocked = False
        link.connection.unblock()
        self.talk(link)
        self._set_reading(link, paused=link.held)

    def unblock_all(self) -> None:
        for link in self.present:
            if link.blocked:
                self.unblock(link)

    def pace(self, link: Link) -> None:
        """It published while publishers rest: TCP holds it back for a moment."""
        link.paced = True
        self._paced.append(link)
        self._set_reading(link, paused=True)

    def unpace_all(self) -> None:
        if self._paced:
            paced, self._paced = self._paced, []
            for link in paced:
                if link.paced and not link.gone:
                    link.paced = False
                    self._set_reading(link, paused=link.held or self._resting)

    def fall_behind(self, link: Link) -> None:
        """It has to take its answers before it may ask on."""
        link.behind = True
        self._set_reading(link, paused=True)

    def catch_up(self, link: Link) -> None:
        link.behind = False
        self._set_reading(link, paused=link.held)

    def rest(self, *, resting: bool) -> None:
        """Nobody is read from for a while, or everybody again."""
        if resting is not self._resting:
            self._resting = resting
            for link in self.present:
                if link.client is not None:
                    self._set_reading(link, paused=resting or link.held)

    def part(self, fault: ConnectionFault, writes: Writes, now_ms: int) -> None:
        """All links end, and the broker is not told: it ends with them. What it had to say to them goes unsaid."""
        for link in list(self.present):
            link.client = None
            self._set_reading(link, paused=False)
            link.connection.close(fault, now_ms)
            data = link.connection.data_to_send()
            if data:
                writes.append((link, data))
            if not link.ended:
                link.ended = True
                self.controls.append(Close(link))
        self.present.clear()
        self.tunnels.clear()
        self.of_client.clear()

    def _set_reading(self, link: Link, *, paused: bool) -> None:
        if link.reading_paused is not paused:
            link.reading_paused = paused
            self.controls.append(PauseReading(link) if paused else ResumeReading(link))

    # What is to be written.

    def talk(self, link: Link) -> None:
        """The connection itself has something to send, beside what the broker sends."""
        self._talking[link] = None

    def take_writes(self, dirty: Iterable[Client], writes: Writes) -> list[Client]:
        """Adds what everybody has to send: these clients, of whichever broker, and the connections themselves. Returns
        those of them that have no link."""
        linkless: list[Client] = []
        for client in dirty:
            link = self.of_client.get(client)
            if link is not None:
                self.take(link, client, writes)
            else:
                linkless.append(client)
        if self._resumed:
            for link in self._resumed:
                if link.client is not None:
                    self.take(link, link.client, writes)
            self._resumed.clear()
        if self._talking:
            for link in self._talking:
                if not link.ended:
                    self._take_own(link, writes)
            self._talking.clear()
        return linkless

    def take(self, link: Link, client: Client, writes: Writes) -> None:
        if link.writing_paused:
            # Its replies wait in the session. Who asks on without reading the answers is not read from either.
            if client.session.pending_bytes > limits.OUTGOING_HIGH_BYTES:
                self._set_reading(link, paused=True)
            return
        data = client.session.take()
        if data:
            link.connection.wrote()
            link.count_sent(len(data))
            writes.append((link, data))
        if link.reading_paused and not link.held and not self._resting:
            self._set_reading(link, paused=False)

    def _take_own(self, link: Link, writes: Writes) -> None:
        data = link.connection.data_to_send()
        if data and not link.gone:
            link.count_sent(len(data))
            writes.append((link, data))
        if link.connection.state is State.CLOSED and not link.gone:
            link.ended = True
            self.controls.append(Close(link))
