"""Sorts what clients said: the broker's work is gathered for the next batch, the rest is answered at once or noted.

Who is in is heard at once; who is not waits in line (`handshakes`), and a few of them are heard in each step (`go_on`).
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, assert_never

from pandomq.kernel import PublishRun, SettleRun
from pandomq.limits import DEPARTURES_PER_STEP_MAX
from pandomq.methods import ConnectionUpdateSecretOk, MethodInput
from pandomq.node.proxy_header import NotAProxyHeader
from pandomq.wire.handshake import language
from pandomq.wire.inputs import Faulted, Input, Login, Misgreeted, OpenVhost, PeerClosed, Secured, UpdateSecret
from pandomq.wire.states import HANDSHAKE, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.broker.broker import Broker
    from pandomq.broker.client import Client
    from pandomq.node.backlog import Batch
    from pandomq.node.endings import Endings
    from pandomq.node.link import Link
    from pandomq.node.links import Links
    from pandomq.node.peer_door import PeerDoor
    from pandomq.node.pressure import Pressure
    from pandomq.node.reception import Ahead, Reception

log = logging.getLogger("pandomq")


class Intake:
    __slots__ = ("_departures", "_door", "_endings", "_links", "_pressure", "_reception", "_said")

    def __init__(
        self, reception: Reception, links: Links, endings: Endings, pressure: Pressure, door: PeerDoor | None
    ) -> None:
        self._reception = reception
        self._door = door
        self._links = links
        self._endings = endings
        self._pressure = pressure
        self._said: dict[Broker, Batch] = {}
        self._departures: dict[Link, None] = {}
        """Clients whose sockets are closed."""

    def receive(self, link: Link, data: memoryview, now_ms: int) -> None:
        """What one read brought."""
        if link.relay is not None:
            link.relay.take(data, now_ms)
        elif self._links.handshakes.concerns(link):
            self._links.line_up(link, data)
        else:
            self._hear(link, data, now_ms)

    def go_on(self, now_ms: int) -> bool:
        """With some of the handshakes, and of the farewells; True if there are more."""
        for link, octets in self._links.take_turns():
            if not link.gone and not link.ended:
                self._hear(link, memoryview(octets), now_ms)
                self._links.handshakes.look_at(link)
        self.gather_ahead(self._reception.go_on(now_ms), now_ms)
        for link in list(islice(self._departures, DEPARTURES_PER_STEP_MAX)):
            del self._departures[link]
            self._lose(link, now_ms)
        return self._links.handshakes.waiting or self._reception.goes_on or bool(self._departures)

    def lost(self, link: Link, now_ms: int) -> None:
        """Another broker is missed at once; of clients a few are let go in each step, however many go at once."""
        if link.hello is not None:
            self._lose(link, now_ms)
        elif not link.gone:
            self._departures[link] = None

    def _lose(self, link: Link, now_ms: int) -> None:
        last_words = self._links.handshakes.hear_out(link)
        if last_words and not link.ended:
            self._hear(link, memoryview(last_words), now_ms)
        if link.gone:
            return
        if link.hello is not None:
            assert self._door is not None
            self._door.lost(link, now_ms)
        elif link.connection.state is State.RUNNING:
            log.warning("connection %s ended without a close", link.peer_name)
        elif link.connection.state is State.STARTING:
            # As clients do that look for the data port: what they wanted to know they were told.
            log.debug("connection %s ended before it logged in", link.peer_name)
        elif link.connection.state in HANDSHAKE:
            log.warning("connection %s ended in the middle of the handshake", link.peer_name)
        self._links.forget(link, now_ms)

    def _hear(self, link: Link, data: memoryview, now_ms: int) -> None:
        if link.before is not None:
            try:
                data = link.behind_proxy(data)
            except NotAProxyHeader:
                self._links.drop(link, "it does not begin with a PROXY header", now_ms)
                return
            if not data:
                return
        self.gather_all(link, link.connection.receive(data), now_ms)
        incomplete = self._links.incomplete
        greediest = None if link.hello is not None else incomplete.received(link)
        if greediest is not None:
            self.gather_all(greediest, greediest.connection.give_up(incomplete.fault), now_ms)
            incomplete.forget(greediest)
        if link.connection.state is not State.RUNNING:
            self._links.talk(link)

    def take_batch(self, broker: Broker) -> Batch:
        """What the clients of this broker have said."""
        return self._said.pop(broker, [])

    def gather(self, client: Client, work: Sequence[PublishRun | SettleRun | MethodInput]) -> None:
        self._said.setdefault(client.broker, []).append((client, work))

    def gather_ahead(self, let_in: Sequence[Ahead], now_ms: int) -> None:
        for link, inputs in let_in:
            self.gather_all(link, inputs, now_ms)
            self._links.handshakes.look_at(link)

    def gather_all(self, link: Link, inputs: Sequence[Input], now_ms: int) -> None:
        while inputs:
            if link.hello is not None:
                assert self._door is not None
                inputs = self._door.hear(link, inputs, now_ms)
            else:
                inputs = self._gather(link, inputs, now_ms)

    def _gather(self, link: Link, inputs: Sequence[Input], now_ms: int) -> list[Input]:
        """Returns what a client that is let in had sent ahead."""
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
                    log.warning("connection %s refused: it speaks %s", link.peer_name, language(greeting))
                case Login():
                    self.gather_ahead(self._reception.log_in(link, item, now_ms), now_ms)
                case Secured(response):
                    assert self._door is not None, "only other brokers are challenged"
                    ahead = self._door.check(link, response, now_ms)
                case OpenVhost():
                    ahead = self._reception.open(link, item, now_ms)
                case UpdateSecret():
                    link.connection.send(0, ConnectionUpdateSecretOk())
                    self._links.talk(link)
                case PeerClosed():
                    self._endings.add(link, None)
                case Faulted(fault):
                    self._endings.add(link, fault, patient=link.client is not None and link.client.proxied)
                case _:
                    assert_never(item)
        if work and link.client is not None:
            self.gather(link.client, work)
        return ahead
