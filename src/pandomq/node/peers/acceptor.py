"""The accepting end of links between brokers, from the login to the messages published on it.

Brokers log in with a mechanism of their own (`cluster.acceptance`), open one channel, and publish there. They have no
user and no vhost, and are not counted among the clients. Tunnels are accepted here, too, and are clients from then on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pandomq import __version__
from pandomq.cluster.acceptance import Acceptance, NotAccepted
from pandomq.cluster.dialed_connection import CLOSED_BY_PEER
from pandomq.cluster.hello import LINK, PASSAGE, TRUNK, Objection, encode
from pandomq.cluster.introduction import CLOSED_WITH_REASON
from pandomq.cluster.limits import LINK_FRAME_BYTES_MAX, LINK_HEARTBEAT_S, LINK_MESSAGE_BYTES_MAX
from pandomq.cluster.peer_messages import CHANNEL, PeerMessageKind
from pandomq.cluster.vouching import TUNNEL_AGREED, identity_of, vouched_properties
from pandomq.errors import ConnectionFault, channel_error, command_invalid
from pandomq.ids import UserName
from pandomq.kernel import OVERSIZED, PublishRun
from pandomq.methods import ChannelOpen, ChannelOpenOk, MethodInput
from pandomq.node.clients.client_link import Vouched
from pandomq.wire.inputs import Faulted, Login, OpenVhost, PeerClosed
from pandomq.wire.offer import Agreed, Offer
from pandomq.wire.sasl import CLUSTER
from pandomq.wire.states import ConnectionState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.cluster.hello import Hello
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.peers.links import PeerLinks
    from pandomq.wire.inputs import Input

log = logging.getLogger("pandomq")

_KINDS = {kind.value: kind for kind in PeerMessageKind}


class PeerAcceptor:
    __slots__ = ("_links", "_offer", "_peers", "_tunnel_offer")

    def __init__(self, links: ClientLinks, peers: PeerLinks, message_bytes_max: int) -> None:
        self._links = links
        self._peers = peers
        self.change_settings(message_bytes_max)
        self._offer = Offer(
            version=__version__,
            proposal=Agreed(CHANNEL, LINK_FRAME_BYTES_MAX, LINK_HEARTBEAT_S),
            message_bytes_max=LINK_MESSAGE_BYTES_MAX,
        )

    def change_settings(self, message_bytes_max: int) -> None:
        self._tunnel_offer = Offer(version=__version__, proposal=TUNNEL_AGREED, message_bytes_max=message_bytes_max)

    def greet(self, link: ClientLink, hello: bytes) -> list[Input]:
        """Takes the broker's hello. Returns what it had sent ahead."""
        link.acceptance = Acceptance(self._peers.key, self._peers.hello())
        try:
            challenge = link.acceptance.greet(hello)
        except NotAccepted as refused:
            self._refuse(link, refused.reason, refused.answer)
            return []
        self._links.talk(link)
        return link.connection.challenge(challenge)

    def check(self, link: ClientLink, response: bytes, now_ms: int) -> list[Input]:
        """Checks the broker's proof."""
        assert link.acceptance is not None, "only brokers are challenged"
        try:
            hello = link.acceptance.accept(response)
            reason = self._objection(hello, now_ms)
            if reason is not None:
                raise NotAccepted(reason, encode(Objection(reason, lasting=False)))
        except NotAccepted as refused:
            self._refuse(link, refused.reason, refused.answer)
            return []
        link.acceptance = None
        self._links.talk(link)
        if hello.purpose not in (LINK, PASSAGE):
            return self._let_tunnel_in(link, hello, now_ms)
        self._links.let_pass(link)
        link.hello = hello
        if hello.purpose == PASSAGE:
            self._peers.relays.begin(link, hello, now_ms)
        else:
            link.owner = self
            self._hear(link, link.connection.accept_login(self._offer), now_ms)
        return []

    def _objection(self, hello: Hello, now_ms: int) -> str | None:
        """The objection to a broker that has proven its identity."""
        if hello.purpose == PASSAGE:
            return self._peers.relays.objection(hello)
        return self._peers.objection(hello, now_ms) if hello.purpose == LINK else None

    def _let_tunnel_in(self, link: ClientLink, hello: Hello, now_ms: int) -> list[Input]:
        """The tunnel represents a client, whose password the dialing broker has verified; it is one of the clients
        then."""
        if hello.through:
            self._drop_older(identity_of(hello), now_ms)
        is_trunk, identity = hello.purpose == TRUNK, identity_of(hello)
        link.vouched = Vouched(hello.name, hello.life, hello.peer, trunk=is_trunk, identity=identity)
        link.login = Login(CLUSTER, UserName(hello.user), b"", vouched_properties(hello))
        self._links.let_tunnel_pass(link)
        return link.connection.accept_login(self._tunnel_offer)

    def _drop_older(self, identity: int, now_ms: int) -> None:
        """A broker connects through another one because the direct path is closed. Its older direct connections are
        dead, which would not show for long; and their unacked messages would wait as long."""
        if identity:
            self._links.abort_tunnels(lambda vouched: vouched.identity == identity, now_ms)

    def _refuse(self, link: ClientLink, reason: str, answer: bytes | None) -> None:
        theirs = None if link.acceptance is None else link.acceptance.theirs
        # A passage may be requested without need.
        is_passage = theirs is not None and theirs.purpose == PASSAGE
        log.log(logging.DEBUG if is_passage else logging.WARNING, "rejected a link from %s: %s", link.peer_name, reason)
        if answer is not None:
            link.connection.challenge(answer)
        link.connection.hang_up()
        self._links.talk(link)

    # Events of the connections of proven brokers.

    def receive(self, link: ClientLink, data: memoryview, now_ms: int) -> None:
        if not link.ended:
            link.count_received(len(data))
            self._hear(link, link.connection.receive(data), now_ms)
            if link.connection.state is not ConnectionState.RUNNING:
                self._links.talk(link)

    def resume(self, link: ClientLink) -> None:
        self._links.resume(link)

    def disconnected(self, link: ClientLink, now_ms: int) -> None:
        self._peers.accepted_lost(link, now_ms, by_peer=True, reason=CLOSED_BY_PEER)
        self._links.forget(link, now_ms)

    def _hear(self, link: ClientLink, inputs: Sequence[Input], now_ms: int) -> None:
        while inputs:
            inputs = self._handle(link, inputs, now_ms)

    def _handle(self, link: ClientLink, inputs: Sequence[Input], now_ms: int) -> list[Input]:
        """Returns what the broker had sent ahead."""
        ahead: list[Input] = []
        for item in inputs:
            try:
                match item:
                    case OpenVhost():
                        # Whichever vhost it names: it gets none.
                        ahead = link.connection.accept_vhost(now_ms)
                        self._links.watch(link)
                    case PublishRun():
                        self._take(link, item)
                    case MethodInput(channel, ChannelOpen()) if channel == CHANNEL:
                        link.connection.send(CHANNEL, ChannelOpenOk())
                        assert link.hello is not None
                        self._peers.accepted(link, link.hello, now_ms)
                    case PeerClosed(_, text):
                        link.connection.confirm_close()
                        self._peers.accepted_lost(link, now_ms, by_peer=True, reason=f"{CLOSED_WITH_REASON}{text}")
                    case Faulted(fault):
                        raise fault
                    case _:
                        raise command_invalid("brokers may only publish on links")
            except ConnectionFault as fault:
                log.error("link from %s closed: %s", link.peer_name, fault)
                link.connection.close(fault, now_ms)
                self._links.watch(link)
                self._peers.accepted_lost(link, now_ms, by_peer=False, reason=str(fault))
                break
        self._links.talk(link)
        return ahead

    def _take(self, link: ClientLink, run: PublishRun) -> None:
        for position in range(len(run)):
            _, message, flags = run[position]
            kind = _KINDS.get(message.routing_key)
            if kind is None or flags & OVERSIZED or message.exchange:
                raise command_invalid(f"the message has an unknown kind {message.routing_key!r}, or a wrong size")
            if not self._peers.heard(link, kind, message.body):
                raise channel_error("the peer published on a channel that is not open")
