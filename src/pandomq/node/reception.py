"""Lets clients in: accepts connections, checks logins, opens vhosts.

A login whose password must be held against its hash waits for the runtime's answer; one that failed waits as its
address deserves before it hears so. What a client sends ahead is kept by its connection meanwhile.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pandomq.errors import ConnectionFault
from pandomq.ids import UserName
from pandomq.kernel import Scanner
from pandomq.node.deadlines import Deadlines
from pandomq.node.link import Link
from pandomq.node.logins import Logins, Question, Refusal, Secrets, Welcome
from pandomq.node.offers import make_offer
from pandomq.node.output import Abort, VerifyPassword
from pandomq.node.penalties import Penalties
from pandomq.wire.connection import Connection
from pandomq.wire.sasl import EXTERNAL, MECHANISMS
from pandomq.wire.states import State

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.node.links import Links
    from pandomq.node.settings import NodeSettings
    from pandomq.wire.inputs import Input, Login, OpenVhost

log = logging.getLogger("pandomq")


class Reception:
    def __init__(self, settings: NodeSettings, broker: Broker, links: Links, secrets: Secrets, now_ms: int) -> None:
        self._broker = broker
        self._links = links
        self._penalties = Penalties()
        self._refusals: Deadlines[Link] = Deadlines(now_ms)
        self.logins = Logins(settings, broker, secrets, now_ms)
        self.change_settings(settings)

    def change_settings(self, settings: NodeSettings) -> None:
        self._connections_max = settings.connections_max
        self.handshake_ms_max = settings.handshake_ms_max
        self._offer = make_offer(settings, MECHANISMS)
        self._certified_offer = make_offer(settings, (*MECHANISMS, EXTERNAL))

    def has_room(self, coming: int) -> bool:
        """Whether one more may come while so many are on their way in."""
        return len(self._links.present) + coming < self._connections_max

    def accept(
        self,
        socket: object,
        peer: tuple[str, int],
        now_ms: int,
        *,
        local: tuple[str, int],
        tls: bool,
        certificate_name: str | None,
        through_proxy: bool,
    ) -> Link:
        offer = self._offer if certificate_name is None else self._certified_offer
        link = Link(socket, peer, Connection(offer, Scanner, now_ms))
        link.local, link.tls, link.certificate_name = local, tls, certificate_name
        if through_proxy:
            link.before = b""
        if not self.has_room(0):
            count = len(self._links.present)
            log.warning("refused %s: %d connections are open, which is the limit", link.peer_name, count)
            link.gone = True
            self._links.controls.append(Abort(link))
        else:
            self._links.add(link)
        return link

    def log_in(self, link: Link, login: Login, now_ms: int) -> list[Input]:
        """Returns what the client had sent ahead, if it is let in at once."""
        link.login = login
        answer = self.logins.ask(login, link.certificate_name, from_loopback=link.from_loopback)
        if isinstance(answer, Question):
            self._links.controls.append(VerifyPassword(link, answer))
            return []
        return self._answer(link, answer, now_ms)

    def verified(self, link: Link, question: Question, *, fits: bool, now_ms: int) -> list[Input]:
        if link.gone or link.ended or link.connection.state is not State.LOGIN:
            return []
        self._links.talk(link)
        return self._answer(link, self.logins.learn(question, fits=fits), now_ms)

    def _answer(self, link: Link, answer: Welcome | Refusal, now_ms: int) -> list[Input]:
        assert link.login is not None
        if isinstance(answer, Welcome):
            self._penalties.succeeded(link.peer[0])
            link.login = link.login._replace(user=UserName(answer.user))
            return link.connection.accept_login()
        log.warning("login from %s refused: %s", link.peer_name, answer.reason)
        self._refusals.put(link, now_ms + self._penalties.failed(link.peer[0], now_ms))
        return []

    def tick(self, now_ms: int) -> None:
        for link in self._refusals.take_due(now_ms):
            if not link.gone and link.login is not None and link.connection.state is State.LOGIN:
                link.connection.refuse_login(link.login, now_ms)
                self._links.talk(link)
                self._links.watch(link)

    def open(self, link: Link, request: OpenVhost, now_ms: int) -> list[Input]:
        """Returns what the client had sent ahead, if it may open the vhost."""
        connection, login = link.connection, link.login
        assert login is not None
        link.login, link.mechanism = None, login.mechanism
        try:
            link.client = self._broker.connect(
                user=login.user,
                vhost=request.vhost,
                peer=link.name,
                client_properties=login.client_properties,
                frame_max=connection.agreed.frame_max,
                channel_max=connection.agreed.channel_max,
                now_ms=now_ms,
            )
        except ConnectionFault as fault:
            log.warning("connection %s refused: %s", link.peer_name, fault)
            connection.close(fault, now_ms)
            self._links.watch(link)
            return []
        self._links.of_client[link.client] = link
        ahead = connection.accept_vhost(now_ms)
        # Through the session from here on: the handshake's last words precede the answers to what was sent ahead.
        link.client.session.write(connection.data_to_send())
        self._links.watch(link)
        return ahead
