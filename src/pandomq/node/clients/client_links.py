"""All client connections of a node: which there are, which handshakes continue next, and the controls for their
sockets.

It does not interpret the inputs: the node handles them, and the acceptor admits clients.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from pandomq import limits
from pandomq.node.clients.deadlines import Deadlines
from pandomq.node.clients.handshakes import Handshakes
from pandomq.node.output import Abort, Close, Control, PauseReading, ResumeReading
from pandomq.wire.pulse import NEVER_MS, Tick
from pandomq.wire.states import ConnectionState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pandomq.broker.client import Client
    from pandomq.errors import ConnectionFault
    from pandomq.node.clients.client_link import ClientLink, Vouched
    from pandomq.node.clients.incomplete import IncompleteMessages
    from pandomq.node.output import Writes

log = logging.getLogger("pandomq")

_TOO_SLOW: Final = "the handshake was not completed in time"
_OVERDUE: Final = {
    ConnectionState.RUNNING: "nothing was received for two heartbeat intervals",
    ConnectionState.ENDING: "nothing was received for two heartbeat intervals",
    ConnectionState.CLOSING: "connection.close was not answered in time",
}


class ClientLinks:
    __slots__ = (
        "_aborted_peers",
        "_deadlines",
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
        self.present: dict[ClientLink, None] = {}
        self.tunnels: dict[ClientLink, None] = {}
        """The connections among them that other brokers have dialed for their clients."""
        self.of_client: dict[Client, ClientLink] = {}
        self.controls: list[Control] = []
        self._talking: dict[ClientLink, None] = {}
        self._resumed: list[ClientLink] = []
        self._resting = False
        self._paced: list[ClientLink] = []
        self._aborted_peers: list[ClientLink] = []
        self._deadlines: Deadlines[ClientLink] = Deadlines(now_ms)

    # Connecting and disconnecting.

    def add(self, link: ClientLink) -> None:
        self.present[link] = None
        self.watch(link)

    def let_pass(self, link: ClientLink) -> None:
        """The link is another broker, not a client; it is watched, and not counted."""
        del self.present[link]
        self.handshakes.forget(link)

    def let_tunnel_pass(self, link: ClientLink) -> None:
        """The link is a client, but of another broker, and counted there."""
        self.tunnels[link] = None

    @property
    def count(self) -> int:
        """The number of connections to this broker, open or not."""
        return len(self.present) - len(self.tunnels)

    def take_aborted_peers(self) -> list[ClientLink]:
        dropped, self._aborted_peers = self._aborted_peers, []
        return dropped

    def abort(self, link: ClientLink, why: str, now_ms: int) -> None:
        log.warning("connection %s dropped: %s", link.peer_name, why)
        self.controls.append(Abort(link))
        self.forget(link, now_ms)
        if link.hello is not None:
            self._aborted_peers.append(link)

    def forget(self, link: ClientLink, now_ms: int) -> None:
        link.gone = True
        link.connection.hang_up()
        if link.client is not None:
            self.let_go(link, now_ms)
        self.present.pop(link, None)
        self.tunnels.pop(link, None)
        self._talking.pop(link, None)
        self.incomplete.forget(link)
        self.handshakes.forget(link)

    def abort_tunnels(self, are_dead: Callable[[Vouched], bool], now_ms: int) -> None:
        """Their connections still seem to be open, and no broker reads them any more."""
        for link in [link for link in self.tunnels if link.vouched is not None and are_dead(link.vouched)]:
            self.controls.append(Abort(link))
            self.forget(link, now_ms)

    def let_go(self, link: ClientLink, now_ms: int) -> None:
        """Releases the broker's client; the link may stay for the closing handshake."""
        assert link.client is not None
        link.client.broker.disconnect(link.client, now_ms)
        del self.of_client[link.client]
        link.client = None
        # The link waits for nothing any more; its close-ok or its end of file is to be read.
        link.blocked = link.behind = link.paced = link.waits_turn = False
        self._set_reading(link, paused=False)

    # Handshakes.

    def line_up(self, link: ClientLink, data: memoryview) -> None:
        """The link's input waits for its turn."""
        if not self.handshakes.put(link, data):
            self._set_reading(link, paused=True)

    def take_turns(self) -> list[tuple[ClientLink, bytes]]:
        turns = self.handshakes.take()
        for link, _ in turns:
            if not link.gone:
                self._set_reading(link, paused=link.held)
        return turns

    # Time.

    def watch(self, link: ClientLink) -> None:
        """To be called whenever the connection's next deadline has moved forward."""
        if link.connection.due_ms != NEVER_MS:
            self._deadlines.put(link, link.connection.due_ms)

    def tick(self, now_ms: int) -> None:
        dropped = 0
        for link in self._deadlines.take_due(now_ms):
            if link.gone or link.ended:
                continue
            if dropped >= limits.DROPS_PER_TICK_MAX:
                # Very many may be late at the same time, and closing a socket takes some time.
                self._deadlines.put(link, now_ms)
                continue
            if self.handshakes.waits(link):
                # This broker causes the wait.
                link.connection.due_ms = now_ms + limits.CROWDED_HANDSHAKE_MS_MAX
                self.watch(link)
                continue
            if link.blocked or link.paced or link.waits_turn or self._resting:
                # Its heartbeats wait unread in the socket, because this broker does not read. There is no such excuse
                # for a link that is not read from because it reads no answers.
                link.connection.excuse()
            state = link.connection.state
            if link.connection.tick(now_ms) is Tick.DROP:
                self.abort(link, _OVERDUE.get(state, _TOO_SLOW), now_ms)
                dropped += 1
                continue
            self.talk(link)
            self.watch(link)
        for link in self.handshakes.idlers(now_ms):
            self.abort(link, _TOO_SLOW, now_ms)

    @property
    def next_deadline_ms(self) -> int:
        return self._deadlines.next_ms

    # Sockets that accept no more, or that are not read from.

    def resume(self, link: ClientLink) -> None:
        link.writing_paused = False
        # A client that takes what this broker sends is alive, though its input may wait unread.
        link.connection.excuse()
        if link.client is not None:
            link.client.session.resume()
            self._resumed.append(link)

    def block(self, link: ClientLink, reason: str) -> None:
        """The link published during an alarm: it gets connection.blocked, and TCP holds it back."""
        link.blocked = True
        link.connection.block(reason)
        self.talk(link)
        self._set_reading(link, paused=True)

    def unblock(self, link: ClientLink) -> None:
        link.blocked = False
        link.connection.unblock()
        self.talk(link)
        self._set_reading(link, paused=link.held)

    def unblock_all(self) -> None:
        for link in self.present:
            if link.blocked:
                self.unblock(link)

    def pace(self, link: ClientLink) -> None:
        """The link published while publishers pause: TCP holds it back for a moment."""
        link.paced = True
        self._paced.append(link)
        self._set_reading(link, paused=True)

    @property
    def has_paced(self) -> bool:
        return bool(self._paced)

    def unpace_all(self) -> None:
        paced, self._paced = self._paced, []
        for link in paced:
            if link.paced and not link.gone:
                link.paced = False
                self._set_reading(link, paused=link.held or self._resting)

    def fall_behind(self, link: ClientLink) -> None:
        """The client has to read its answers before it may send more requests."""
        link.behind = True
        self._set_reading(link, paused=True)

    def catch_up(self, link: ClientLink) -> None:
        link.behind = False
        self._set_reading(link, paused=link.held)

    def of_user(self, user: str) -> list[ClientLink]:
        """The open connections of this user."""
        return [link for link in self.present if link.client is not None and link.client.user == user]

    def await_turn(self, link: ClientLink, *, waits: bool) -> None:
        if link.waits_turn is not waits:
            link.waits_turn = waits
            self._set_reading(link, paused=link.held or self._resting)

    def rest(self, *, resting: bool) -> None:
        """Stops reading from all links for a while, or resumes."""
        if resting is not self._resting:
            self._resting = resting
            for link in self.present:
                if link.client is not None:
                    self._set_reading(link, paused=resting or link.held)

    def close_all(self, fault: ConnectionFault, writes: Writes, now_ms: int) -> None:
        """All links end, and the broker is not notified: it ends with them. Its pending output for them is not sent."""
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

    def _set_reading(self, link: ClientLink, *, paused: bool) -> None:
        if link.reading_paused is not paused:
            link.reading_paused = paused
            self.controls.append(PauseReading(link) if paused else ResumeReading(link))

    # Output.

    def talk(self, link: ClientLink) -> None:
        """The connection itself has something to send, beside the output of the broker."""
        self._talking[link] = None

    def take_writes(self, dirty: Iterable[Client], writes: Writes) -> list[Client]:
        """Adds all output: of these clients, of whichever broker, and of the connections themselves. Returns those of
        the clients that have no link."""
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

    def take(self, link: ClientLink, client: Client, writes: Writes) -> None:
        if link.writing_paused:
            # Its replies wait in the session. A client that sends requests without reading the answers is not read from
            # either.
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

    def _take_own(self, link: ClientLink, writes: Writes) -> None:
        data = link.connection.data_to_send()
        if data and not link.gone:
            link.count_sent(len(data))
            writes.append((link, data))
        if link.connection.state is ConnectionState.CLOSED and not link.gone:
            link.ended = True
            self.controls.append(Close(link))
