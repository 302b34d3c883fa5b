"""Lets clients in: accepts connections, checks logins, opens vhosts.

Who logs in is answered by `Attempts`, at once or later. What a client sends ahead is kept by its connection meanwhile.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypedDict

from pandomq.cluster.limits import BROKERS_COMING_MAX, LINK_FRAME_BYTES_MAX
from pandomq.errors import ConnectionFault, connection_forced
from pandomq.ids import UserName
from pandomq.kernel import Scanner
from pandomq.limits import HANDSHAKES_PER_STEP_MAX
from pandomq.node.attempts import Attempt, Attempts, Caller
from pandomq.node.link import Link, address_name, is_loopback
from pandomq.node.logins import Logins, Question, Secrets, Welcome
from pandomq.node.offers import Place, make_offer, mechanisms_at
from pandomq.node.output import Abort, VerifyPassword
from pandomq.wire.connection import Connection
from pandomq.wire.sasl import CLUSTER
from pandomq.wire.states import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pandomq.broker.broker import Broker
    from pandomq.node.links import Links
    from pandomq.node.office import Office
    from pandomq.node.peer_door import PeerDoor
    from pandomq.node.settings import NodeSettings
    from pandomq.wire.inputs import Input, Login, OpenVhost
    from pandomq.wire.offer import Offer

log = logging.getLogger("pandomq")

Ahead = tuple[Link, "list[Input]"]
"""A client that was let in, and what it had sent ahead."""


class Arrival(TypedDict, total=False):
    """What is known of a connection beside its peer."""

    local: tuple[str, int]
    tls: bool
    certificate_name: str | None
    through_proxy: bool
    place: Place


class Reception:
    def __init__(
        self,
        settings: NodeSettings,
        broker: Broker,
        links: Links,
        secrets: Secrets,
        office: Office,
        door: PeerDoor | None,
        now_ms: int,
    ) -> None:
        """Without a door no other brokers are let in."""
        self._broker = broker
        self._door = door
        self._links = links
        self._office = office
        self._announced: Mapping[str, object] = {}
        self._offers: dict[tuple[Place, bool], Offer] = {}
        self.goes_on = False
        """More may be let in by what is known already."""
        self.logins = Logins(settings, broker, secrets)
        self._attempts = Attempts(self.logins, now_ms)
        self.change_settings(settings)

    def change_settings(self, settings: NodeSettings) -> None:
        self.logins.change_settings(settings)
        self._connections_max = settings.connections_max
        self.handshake_ms_max = settings.handshake_ms_max
        self._settings = settings
        if self._door is not None:
            self._door.change_settings(settings.message_bytes_max)
        self._offers.clear()

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """How clients may log in."""
        return self._settings.mechanisms

    def announce(self, properties: Mapping[str, object]) -> None:
        """Further server properties, for connections from now on."""
        self._announced = properties
        self._offers.clear()

    def _offer(self, place: Place, *, certified: bool) -> Offer:
        """Made when somebody comes: what is announced may change many times before."""
        offer = self._offers.get((place, certified))
        if offer is None:
            mechanisms = mechanisms_at(place, self._settings, certified=certified, clustered=self._door is not None)
            offer = self._offers[place, certified] = make_offer(self._settings, mechanisms, self._announced)
        return offer

    def has_room(self, coming: int) -> bool:
        """Whether one more may come while so many are on their way in."""
        # Some have yet to say that they are brokers, which are not counted among the clients.
        reserved = 0 if self._door is None else BROKERS_COMING_MAX
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
        place: Place = Place.BOTH,
    ) -> Link:
        offer = self._offer(place, certified=certificate_name is not None)
        link = Link(socket, peer, Connection(offer, Scanner, now_ms))
        link.local, link.tls, link.certificate_name = local, tls, certificate_name
        if through_proxy:
            link.before = b""
        if not self.has_room(0):
            count = self._links.count
            log.warning("refused %s: %d connections are open, which is the limit", link.peer_name, count)
            link.gone = True
            self._links.controls.append(Abort(link))
        else:
            self._links.add(link)
            self._links.handshakes.begin(link, now_ms)
        return link

    # Logging in. What clients sent ahead of the answer is returned with those who are let in.

    def log_in(self, link: Link, login: Login, now_ms: int) -> list[Ahead]:
        if login.mechanism == CLUSTER:
            assert self._door is not None, "nobody else may choose it"
            return [(link, self._door.greet(link, login.password))]
        if self._links.count > self._connections_max:
            self._links.drop(link, f"{self._connections_max} connections are open, which is the limit", now_ms)
            return []
        link.login = login
        if not self._office.takes_clients or self._office.misplaced(login.client_properties) is not None:
            # All it will hear is who serves. For that no password is needed, nor is there time to look at it.
            link.unknown = True
            self._links.talk(link)
            return [(link, link.connection.accept_login())]
        attempt = Attempt(link, link.peer_name, link.peer[0], login, link.certificate_name, link.from_loopback)
        welcome = self._attempts.begin(attempt, now_ms)
        return self._let_in(attempt, welcome)

    def call(self, caller: Caller, login: Login, peer: tuple[str, int], now_ms: int) -> list[Ahead]:
        """A login without a connection."""
        name, address = address_name(peer), peer[0]
        attempt = Attempt(caller, name, address, login, caller.certificate_name, is_loopback(address))
        welcome = self._attempts.begin(attempt, now_ms)
        return self._let_in(attempt, welcome)

    def verified(self, attempt: Attempt, question: Question, *, fits: bool, now_ms: int) -> list[Ahead]:
        welcome = self._attempts.verified(attempt, question, fits=fits, now_ms=now_ms)
        return self._let_in(attempt, welcome)

    def tick(self, now_ms: int) -> None:
        for attempt in self._attempts.due(now_ms):
            match attempt.who:
                case Caller() as caller if not caller.gone:
                    caller.on_answer(None)
                case Link() as link if self._waits(link):
                    link.connection.refuse_login(attempt.login, now_ms)
                    self._links.talk(link)
                    self._links.watch(link)
                    self._links.handshakes.look_at(link)

    def go_on(self, now_ms: int) -> list[Ahead]:
        """Asks the next question, if none is being answered. Many may have waited for one answer: those who are let in
        by it come in as others do, a few in each step."""
        ahead: list[Ahead] = []
        self.goes_on = False
        for _ in range(HANDSHAKES_PER_STEP_MAX):
            turn = self._attempts.next(now_ms)
            if turn is None:
                return ahead
            attempt, answer = turn
            if isinstance(answer, Question):
                self._links.controls.append(VerifyPassword(attempt, answer))
            else:
                ahead += self._let_in(attempt, answer)
        self.goes_on = True
        return ahead

    def _let_in(self, attempt: Attempt, welcome: Welcome | None) -> list[Ahead]:
        who = attempt.who
        if welcome is None or who.gone:
            return []
        if isinstance(who, Caller):
            who.on_answer(welcome)
            return []
        if not self._waits(who):
            return []
        who.login = attempt.login._replace(user=UserName(welcome.user))
        self._links.talk(who)
        return [(who, who.connection.accept_login())]

    def _waits(self, link: Link) -> bool:
        return not link.gone and not link.ended and link.connection.state is State.LOGIN

    def open(self, link: Link, request: OpenVhost, now_ms: int) -> list[Input]:
        """Returns what the client had sent ahead, if it may open the vhost."""
        connection, login, vouched = link.connection, link.login, link.vouched
        assert login is not None
        link.login, link.mechanism = None, login.mechanism
        try:
            properties = login.client_properties
            unwanted = self._office.mismatch(properties) or self._office.misplaced(properties)
            if unwanted is not None:
                raise unwanted
            broker = self._office.host(self._broker, tunnel=vouched is not None)
            if link.unknown:
                raise connection_forced("this broker has just become the root; connect again")
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
            log.log(level, "connection %s refused: %s", link.peer_name, fault)
            connection.close(fault, now_ms)
            self._links.watch(link)
            return []
        log.debug("connection %s open: user %r, vhost %r", link.peer_name, login.user, request.vhost)
        self._links.of_client[link.client] = link
        ahead = connection.accept_vhost(now_ms)
        # Through the session from here on: the handshake's last words precede the answers to what was sent ahead.
        link.client.session.write(connection.data_to_send())
        self._links.watch(link)
        return ahead
