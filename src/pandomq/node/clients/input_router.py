"""Sorts the inputs of clients: the broker's work is gathered for the next batch, the rest is answered at once or noted.

Input of an open connection is handled at once; other connections wait in line (`handshakes`), and a few of them are
handled in each step (`go_on`).
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, assert_never

from pandomq.kernel import PublishRun, SettleRun
from pandomq.limits import DEPARTURES_PER_STEP_MAX
from pandomq.methods import ConnectionUpdateSecretOk, MethodInput
from pandomq.node.clients.proxy_header import NotAProxyHeader
from pandomq.node.clients.turns import Turns
from pandomq.wire.handshake import language
from pandomq.wire.inputs import Faulted, Input, Login, Misgreeted, OpenVhost, PeerClosed, Secured, UpdateSecret
from pandomq.wire.states import HANDSHAKE, ConnectionState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.broker.broker import Broker
    from pandomq.broker.client import Client
    from pandomq.node.clients.acceptor import Ahead, ClientAcceptor
    from pandomq.node.clients.backlog import Batch
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.clients.closing import ClosingConnections
    from pandomq.node.peers.acceptor import PeerAcceptor
    from pandomq.node.pressure import Pressure

log = logging.getLogger("pandomq")


class InputRouter:
    __slots__ = ("_acceptor", "_closing", "_departures", "_links", "_peer_acceptor", "_pressure", "_said", "turns")

    def __init__(
        self,
        acceptor: ClientAcceptor,
        links: ClientLinks,
        closing: ClosingConnections,
        pressure: Pressure,
        peer_acceptor: PeerAcceptor | None,
    ) -> None:
        self._acceptor = acceptor
        self._peer_acceptor = peer_acceptor
        self._links = links
        self._closing = closing
        self._pressure = pressure
        self.turns = Turns(links)
        self._said: dict[Broker, Batch] = {}
        self._departures: dict[ClientLink, None] = {}
        """Clients whose sockets are closed."""

    def receive(self, link: ClientLink, data: memoryview, now_ms: int) -> None:
        """Handles what one read brought."""
        if link.ended:
            return
        link.count_received(len(data))
        if self._links.handshakes.concerns(link):
            self._links.line_up(link, data)
        else:
            self._hear(link, data, now_ms)

    def go_on(self, now_ms: int) -> bool:
        """Handles some of the handshakes, and of the closed connections; True if there are more."""
        links, acceptor, turns = self._links, self._acceptor, self.turns
        # Most steps have nothing to do here.
        if links.handshakes.waiting:
            for link, octets in links.take_turns():
                if not link.gone and not link.ended:
                    self._hear(link, memoryview(octets), now_ms)
                    links.handshakes.look_at(link)
        ahead = acceptor.go_on(now_ms)
        if ahead:
            self.gather_ahead(ahead, now_ms)
        if self._departures:
            for link in list(islice(self._departures, DEPARTURES_PER_STEP_MAX)):
                del self._departures[link]
                self._lose(link, now_ms)
        if turns.counts:
            turns.go_on()
        return links.handshakes.waiting or acceptor.goes_on or (turns.counts and turns.taken) or bool(self._departures)

    def resume(self, link: ClientLink) -> None:
        self._links.resume(link)

    def disconnected(self, link: ClientLink, now_ms: int) -> None:
        """A few losses are handled in each step, however many clients disconnect at once."""
        self._departures[link] = None

    def _lose(self, link: ClientLink, now_ms: int) -> None:
        last_words = self._links.handshakes.hear_out(link)
        if last_words and not link.ended:
            self._hear(link, memoryview(last_words), now_ms)
        if link.gone:
            return
        if link.connection.state is ConnectionState.RUNNING:
            log.warning("connection %s was closed by the client without connection.close", link.peer_name)
        elif link.connection.state is ConnectionState.STARTING:
            # Clients that look for the data port do that: they have the information that they wanted.
            log.debug("connection %s was closed by the client before login", link.peer_name)
        elif link.connection.state in HANDSHAKE:
            log.warning("connection %s was closed by the client during the handshake", link.peer_name)
        self._links.forget(link, now_ms)

    def _hear(self, link: ClientLink, data: memoryview, now_ms: int) -> None:
        if link.before is not None:
            try:
                data = link.behind_proxy(data)
            except NotAProxyHeader as wrong:
                self._links.abort(link, str(wrong), now_ms)
                return
            if not data:
                return
        self.gather_all(link, link.connection.receive(data), now_ms)
        if link.connection.decoded_bytes:
            self.turns.count(link, link.connection.decoded_bytes)
            link.connection.decoded_bytes = 0
        incomplete = self._links.incomplete
        greediest = None if link.hello is not None else incomplete.received(link)
        if greediest is not None:
            self.gather_all(greediest, greediest.connection.close_with(incomplete.fault), now_ms)
            incomplete.forget(greediest)
        if link.connection.state is not ConnectionState.RUNNING:
            self._links.talk(link)

    @property
    def awaits_lease(self) -> bool:
        """Clients wait to be admitted until this broker may serve."""
        return self._acceptor.awaits_lease

    def take_batch(self, broker: Broker) -> Batch:
        """The inputs of this broker's clients."""
        return self._said.pop(broker, [])

    def gather(self, client: Client, work: Sequence[PublishRun | SettleRun | MethodInput]) -> None:
        self._said.setdefault(client.broker, []).append((client, work))

    def gather_ahead(self, let_in: Sequence[Ahead], now_ms: int) -> None:
        for link, inputs in let_in:
            self.gather_all(link, inputs, now_ms)
            self._links.handshakes.look_at(link)

    def gather_all(self, link: ClientLink, inputs: Sequence[Input], now_ms: int) -> None:
        while inputs and not link.read_failed:
            inputs = self._gather(link, inputs, now_ms)

    def _gather(self, link: ClientLink, inputs: Sequence[Input], now_ms: int) -> list[Input]:
        """Returns the inputs that an admitted client had sent ahead."""
        work: list[PublishRun | SettleRun | MethodInput] = []
        ahead: list[Input] = []
        for item in inputs:
            match item:
                case PublishRun():
                    work.append(item)
                    self._pressure.published(link)
                case SettleRun() | MethodInput():
                    work.append(item)
                case Misgreeted(greeting):
                    log.warning("connection %s rejected: the client speaks %s", link.peer_name, language(greeting))
                case Login():
                    self.gather_ahead(self._acceptor.log_in(link, item, now_ms), now_ms)
                case Secured(response):
                    assert self._peer_acceptor is not None, "only other brokers are challenged"
                    ahead = self._peer_acceptor.check(link, response, now_ms)
                case OpenVhost():
                    ahead = self._acceptor.open(link, item, now_ms)
                case UpdateSecret():
                    link.connection.send(0, ConnectionUpdateSecretOk())
                    self._links.talk(link)
                case PeerClosed():
                    self._closing.add(link, None)
                case Faulted(fault):
                    self._closing.add(link, fault, patient=link.client is not None and link.client.proxied)
                case _:
                    assert_never(item)
        if work and link.client is not None:
            self.gather(link.client, work)
        return ahead
