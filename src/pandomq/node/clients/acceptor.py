"""Admits clients: accepts connections, checks logins, opens vhosts.

`LoginAttempts` answers logins, at once or later. The connection keeps what a client sends ahead meanwhile. A front
answers logins, and opens vhosts, only while it has a serving lease: without one it may not know yet what was granted or
revoked elsewhere (R16).
"""

from __future__ import annotations

import logging
from itertools import islice
from typing import TYPE_CHECKING, TypedDict

from pandomq.cluster.limits import BROKERS_COMING_MAX, LINK_FRAME_BYTES_MAX
from pandomq.errors import ConnectionFault, connection_forced
from pandomq.ids import UserName
from pandomq.kernel import Scanner
from pandomq.limits import HANDSHAKES_PER_STEP_MAX
from pandomq.node.clients.attempts import LoginAttempt, LoginAttempts, LoginRequester
from pandomq.node.clients.client_link import ClientLink, address_name
from pandomq.node.clients.logins import LoginAccepted, Logins, PasswordCheck, Secrets
from pandomq.node.clients.offers import AddressKind, make_offer, mechanisms_at
from pandomq.node.clients.proxy_header import TrustedProxies, is_loopback
from pandomq.node.output import Abort, VerifyPassword
from pandomq.wire.connection import Connection
from pandomq.wire.inputs import OpenVhost
from pandomq.wire.sasl import CLUSTER
from pandomq.wire.states import ConnectionState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pandomq.broker.broker import Broker
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.peers.acceptor import PeerAcceptor
    from pandomq.node.service_state import ServiceState
    from pandomq.node.settings import NodeSettings
    from pandomq.wire.inputs import Input, Login
    from pandomq.wire.offer import Offer

log = logging.getLogger("pandomq")

Ahead = tuple[ClientLink, "list[Input]"]
"""A client that was admitted, and what it had sent ahead."""


class ClientOrigin(TypedDict, total=False):
    """The properties of a connection beside its peer."""

    local: tuple[str, int]
    tls: bool
    certificate_name: str | None
    through_proxy: bool
    place: AddressKind


class ClientAcceptor:
    def __init__(
        self,
        settings: NodeSettings,
        broker: Broker,
        links: ClientLinks,
        secrets: Secrets,
        service_state: ServiceState,
        peer_acceptor: PeerAcceptor | None,
        now_ms: int,
    ) -> None:
        """Without `peer_acceptor` other brokers are not accepted."""
        self._broker = broker
        self._peer_acceptor = peer_acceptor
        self._links = links
        self._service_state = service_state
        self._announced: Mapping[str, object] = {}
        self._offers: dict[tuple[AddressKind, bool], Offer] = {}
        self.goes_on = False
        """Whether more clients can be admitted at once, without new input."""
        self._awaiting_lease: dict[ClientLink, tuple[Login | OpenVhost, int]] = {}
        """Requests that clients sent while this broker had no lease to serve them, each with the time since which it
        waits, the oldest first."""
        self.logins = Logins(settings, broker, secrets)
        self._attempts = LoginAttempts(self.logins, now_ms)
        self.change_settings(settings)

    def change_settings(self, settings: NodeSettings) -> None:
        self.logins.change_settings(settings)
        self._connections_max = settings.connections_max
        self.handshake_ms_max = settings.handshake_ms_max
        self._settings = settings
        self.trusted_proxies = TrustedProxies(settings.trusted_proxies)
        if self._peer_acceptor is not None:
            self._peer_acceptor.change_settings(settings.message_bytes_max)
        self._offers.clear()

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The login mechanisms of clients."""
        return self._settings.mechanisms

    def announce(self, properties: Mapping[str, object]) -> None:
        """Sets further server properties, for connections from now on."""
        self._announced = properties
        self._offers.clear()

    def _offer(self, place: AddressKind, *, certified: bool) -> Offer:
        """Made when a client connects: what is announced may change many times before."""
        offer = self._offers.get((place, certified))
        if offer is None:
            mechanisms = mechanisms_at(
                place, self._settings, certified=certified, clustered=self._peer_acceptor is not None
            )
            offer = self._offers[place, certified] = make_offer(self._settings, mechanisms, self._announced)
        return offer

    def has_room(self, coming: int) -> bool:
        """Whether one more connection may be accepted while so many are logging in."""
        # Some connections have not yet identified themselves as brokers, which are not counted among the clients.
        reserved = 0 if self._peer_acceptor is None else BROKERS_COMING_MAX
        return self._links.count + coming < self._connections_max + reserved

    def accept(
        self,
        socket: object,
        peer: tuple[str, int],
        now_ms: int,
        *,
        local: tuple[str, int] = ("", 0),
        tls: bool = False,
        certificate_name: str | None = None,
        through_proxy: bool = False,
        place: AddressKind = AddressKind.BOTH,
    ) -> ClientLink:
        offer = self._offer(place, certified=certificate_name is not None)
        link = ClientLink(socket, peer, Connection(offer, Scanner, now_ms))
        link.local, link.tls, link.certificate_name = local, tls, certificate_name
        if through_proxy:
            link.expect_proxy(self.trusted_proxies)
        if not self.has_room(0):
            count = self._links.count
            log.warning(
                "rejected connection from %s: %d connections are open, which is the limit", link.peer_name, count
            )
            link.gone = True
            self._links.controls.append(Abort(link))
        else:
            self._links.add(link)
            self._links.handshakes.begin(link, now_ms)
        return link

    # Logging in. Inputs that clients sent ahead of the answer are returned with those that are admitted.

    def log_in(self, link: ClientLink, login: Login, now_ms: int) -> list[Ahead]:
        if login.mechanism == CLUSTER:
            assert self._peer_acceptor is not None, "nobody else may choose it"
            return [(link, self._peer_acceptor.greet(link, login.password))]
        if self._links.count > self._connections_max:
            self._links.abort(link, f"{self._connections_max} connections are open, which is the limit", now_ms)
            return []
        link.login = login
        if not self._service_state.takes_clients or self._service_state.misplaced(login.client_properties) is not None:
            # The client will only be redirected. That needs no password, and there is no time to check it.
            link.unknown = True
            self._links.talk(link)
            return [(link, link.connection.accept_login())]
        if self._service_state.lacks_lease:
            self._await_lease(link, login, now_ms)
            return []
        attempt = LoginAttempt(link, link.peer_name, link.peer[0], login, link.certificate_name, link.from_loopback)
        welcome = self._attempts.begin(attempt, now_ms)
        return self._let_in(attempt, welcome)

    def call(self, caller: LoginRequester, login: Login, peer: tuple[str, int], now_ms: int) -> list[Ahead]:
        """A login without a connection."""
        name, address = address_name(peer), peer[0]
        near = is_loopback(address) and not caller.relayed
        attempt = LoginAttempt(caller, name, address, login, caller.certificate_name, near)
        welcome = self._attempts.begin(attempt, now_ms)
        return self._let_in(attempt, welcome)

    def verified(self, attempt: LoginAttempt, question: PasswordCheck, *, fits: bool, now_ms: int) -> list[Ahead]:
        welcome = self._attempts.verified(attempt, question, fits=fits, now_ms=now_ms)
        return self._let_in(attempt, welcome)

    def tick(self, now_ms: int) -> None:
        for attempt in self._attempts.due(now_ms):
            match attempt.who:
                case LoginRequester() as caller if not caller.gone:
                    caller.on_answer(None)
                case ClientLink() as link if self._waits(link):
                    link.connection.refuse_login(attempt.login, now_ms)
                    self._links.talk(link)
                    self._links.watch(link)
                    self._links.handshakes.look_at(link)

    def go_on(self, now_ms: int) -> list[Ahead]:
        """Asks the next question, if none is being answered. Many may have waited for one answer: those that it admits
        are admitted like others, a few in each step."""
        ahead = self._go_on_with_lease(now_ms) if self._awaiting_lease else []
        self.goes_on = bool(self._awaiting_lease) and not self._service_state.lacks_lease
        for _ in range(HANDSHAKES_PER_STEP_MAX):
            turn = self._attempts.next(now_ms)
            if turn is None:
                return ahead
            attempt, answer = turn
            if isinstance(answer, PasswordCheck):
                self._links.controls.append(VerifyPassword(attempt, answer))
            else:
                ahead += self._let_in(attempt, answer)
        self.goes_on = True
        return ahead

    @property
    def awaits_lease(self) -> bool:
        """A client waits for a lease."""
        return bool(self._awaiting_lease)

    def _await_lease(self, link: ClientLink, request: Login | OpenVhost, now_ms: int) -> None:
        """Lets the client wait for a lease. This broker causes the wait, so the time for the handshake begins again
        after it."""
        self._awaiting_lease[link] = (request, now_ms)
        link.connection.due_ms = now_ms + self._settings.cluster.root_wait_ms + self.handshake_ms_max
        self._links.watch(link)

    def _go_on_with_lease(self, now_ms: int) -> list[Ahead]:
        """Continues with some of the clients that waited for the lease, if there is one; others are refused after a
        time."""
        ahead: list[Ahead] = []
        lacks_lease = bool(self._awaiting_lease) and self._service_state.lacks_lease
        for link, (request, since_ms) in list(islice(self._awaiting_lease.items(), HANDSHAKES_PER_STEP_MAX)):
            over = link.gone or link.ended
            if lacks_lease and not over and now_ms - since_ms < self._settings.cluster.root_wait_ms:
                break
            del self._awaiting_lease[link]
            if over:
                continue
            # An unverified client is not served, and gets the reason when it opens the vhost.
            link.unknown = link.unknown or lacks_lease
            self._links.talk(link)
            if isinstance(request, OpenVhost):
                ahead.append((link, self.open(link, request, now_ms)))
            elif link.unknown:
                ahead.append((link, link.connection.accept_login()))
            else:
                ahead += self.log_in(link, request, now_ms)
        return ahead

    def _let_in(self, attempt: LoginAttempt, welcome: LoginAccepted | None) -> list[Ahead]:
        who = attempt.who
        if welcome is None or who.gone:
            return []
        if isinstance(who, LoginRequester):
            who.on_answer(welcome)
            return []
        if not self._waits(who):
            return []
        who.login = attempt.login._replace(user=UserName(welcome.user))
        self._links.talk(who)
        return [(who, who.connection.accept_login())]

    def _waits(self, link: ClientLink) -> bool:
        return not link.gone and not link.ended and link.connection.state is ConnectionState.LOGIN

    def open(self, link: ClientLink, request: OpenVhost, now_ms: int) -> list[Input]:
        """Returns what the client had sent ahead, if it may open the vhost."""
        connection, login, vouched = link.connection, link.login, link.vouched
        assert login is not None
        if vouched is None and not link.unknown and self._service_state.lacks_lease:
            self._await_lease(link, request, now_ms)
            return []
        link.login, link.mechanism = None, login.mechanism
        try:
            properties = login.client_properties
            unwanted = self._service_state.mismatch(properties) or self._service_state.misplaced(properties)
            if unwanted is not None:
                raise unwanted
            broker = self._service_state.host(self._broker, tunnel=vouched is not None)
            if link.unknown:
                now_root = connection_forced("this broker has just become the root: connect again")
                raise self._service_state.unserved() if self._service_state.lacks_lease else now_root
            frame_max = connection.agreed.frame_max
            if vouched is not None:
                # It takes larger ones, but for the sake of headers only.
                frame_max = min(frame_max, LINK_FRAME_BYTES_MAX)
            link.client = broker.connect(
                user=login.user,
                vhost=request.vhost,
                peer=link.name,
                client_properties=login.client_properties,
                frame_max=frame_max,
                channel_max=connection.agreed.channel_max,
                now_ms=now_ms,
                counted=vouched is None,
                origin=None if vouched is None else vouched.origin,
                trunk=vouched is not None and vouched.trunk,
                identity=0 if vouched is None else vouched.identity,
            )
        except ConnectionFault as fault:
            level = logging.WARNING if vouched is None else logging.INFO
            log.log(level, "connection %s rejected: %s", link.peer_name, fault)
            connection.close(fault, now_ms)
            self._links.watch(link)
            return []
        log.debug("connection %s open: user %r, vhost %r", link.peer_name, login.user, request.vhost)
        self._links.of_client[link.client] = link
        ahead = connection.accept_vhost(now_ms)
        # Output goes through the session from here on: the handshake's last bytes precede the answers to what was sent
        # ahead.
        link.client.session.write(connection.data_to_send())
        self._links.watch(link)
        return ahead
