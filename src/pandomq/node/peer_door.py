"""Where other brokers come in: the accepting end of a link, from its login to what is published on it.

They log in with a mechanism of their own (`cluster.acceptance`), open one channel, and publish there. They have no
user and no vhost, and are not counted among the clients. Tunnels come in here, too, and are clients from then on.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pandomq import __version__
from pandomq.cluster.acceptance import Acceptance, NotAccepted
from pandomq.cluster.hello import LINK, PASSAGE, TRUNK, Objection, encode
from pandomq.cluster.introduction import GOOD_BYE
from pandomq.cluster.limits import LINK_FRAME_BYTES_MAX, LINK_HEARTBEAT_S, LINK_MESSAGE_BYTES_MAX
from pandomq.cluster.parcels import CHANNEL, Kind
from pandomq.cluster.vouching import TUNNEL_AGREED, identity_of, vouched_properties
from pandomq.errors import ConnectionFault, channel_error, command_invalid
from pandomq.ids import UserName
from pandomq.kernel import OVERSIZED, PublishRun
from pandomq.methods import ChannelOpen, ChannelOpenOk, MethodInput
from pandomq.node.dialed import CLOSED_BY_PEER
from pandomq.node.link import Vouched
from pandomq.node.output import Abort
from pandomq.wire.inputs import Faulted, Login, OpenVhost, PeerClosed
from pandomq.wire.offer import Agreed, Offer
from pandomq.wire.sasl import CLUSTER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pandomq.cluster.hello import Hello
    from pandomq.node.link import Link
    from pandomq.node.links import Links
    from pandomq.node.peer_links import PeerLinks
    from pandomq.wire.inputs import Input

log = logging.getLogger("pandomq")

_KINDS = {kind.value: kind for kind in Kind}


class PeerDoor:
    __slots__ = ("_links", "_offer", "_peers", "_tunnel_offer")

    def __init__(self, links: Links, peers: PeerLinks, message_bytes_max: int) -> None:
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

    def greet(self, link: Link, hello: bytes) -> list[Input]:
        """It says who it is. Returns what it had sent ahead."""
        link.acceptance = Acceptance(self._peers.key, self._peers.hello())
        try:
            challenge = link.acceptance.greet(hello)
        except NotAccepted as refused:
            self._refuse(link, refused.reason, refused.answer)
            return []
        self._links.talk(link)
        return link.connection.challenge(challenge)

    def check(self, link: Link, response: bytes, now_ms: int) -> list[Input]:
        """It proves it, or not."""
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
            return []
        return link.connection.accept_login(self._offer)

    def _objection(self, hello: Hello, now_ms: int) -> str | None:
        """To one that has proven who it is."""
        if hello.purpose == PASSAGE:
            return self._peers.relays.objection(hello)
        return self._peers.objection(hello, now_ms) if hello.purpose == LINK else None

    def _let_tunnel_in(self, link: Link, hello: Hello, now_ms: int) -> list[Input]:
        """It stands for a client, whose password the broker has seen that dialed it; it is one of the clients then."""
        if hello.through:
            self._drop_older(identity_of(hello), now_ms)
        link.vouched = Vouched(hello.name, hello.peer, trunk=hello.purpose == TRUNK, identity=identity_of(hello))
        link.login = Login(CLUSTER, UserName(hello.user), b"", vouched_properties(hello))
        self._links.let_tunnel_pass(link)
        return link.connection.accept_login(self._tunnel_offer)

    def _drop_older(self, identity: int, now_ms: int) -> None:
        """Who comes by way of another broker does so because the direct way is closed. What came by that is dead, which
        would not show for long; and what it has not acked would wait as long."""
        older = [link for link in self._links.tunnels if link.vouched is not None and link.vouched.identity == identity]
        for link in older if identity else ():
            self._links.controls.append(Abort(link))
            self._links.forget(link, now_ms)

    def _refuse(self, link: Link, reason: str, answer: bytes | None) -> None:
        theirs = None if link.acceptance is None else link.acceptance.theirs
        # Passages are asked for on the off-chance.
        is_passage = theirs is not None and theirs.purpose == PASSAGE
        log.log(logging.DEBUG if is_passage else logging.WARNING, "no link from %s: %s", link.peer_name, reason)
        if answer is not None:
            link.connection.challenge(answer)
        link.connection.hang_up()
        self._links.talk(link)

    def hear(self, link: Link, inputs: Sequence[Input], now_ms: int) -> list[Input]:
        """From a broker that is proven. Returns what it had sent ahead."""
        ahead: list[Input] = []
        for item in inputs:
            try:
                match item:
                    case OpenVhost():
                        # Whichever it names: it gets none.
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
                        self._peers.accepted_lost(link, now_ms, by_peer=True, reason=f"{GOOD_BYE}{text}")
                    case Faulted(fault):
                        raise fault
                    case _:
                        raise command_invalid("brokers only publish on links")
            except ConnectionFault as fault:
                log.error("link from %s closed: %s", link.peer_name, fault)
                link.connection.close(fault, now_ms)
                self._links.watch(link)
                self._peers.accepted_lost(link, now_ms, by_peer=False, reason=str(fault))
                break
        self._links.talk(link)
        return ahead

    def lost(self, link: Link, now_ms: int) -> None:
        """Its socket is closed."""
        if link.relay is not None:
            self._peers.relays.link_lost(link.relay)
            return
        self._peers.accepted_lost(link, now_ms, by_peer=True, reason=CLOSED_BY_PEER)

    def _take(self, link: Link, run: PublishRun) -> None:
        for position in range(len(run)):
            _, message, flags = run[position]
            kind = _KINDS.get(message.routing_key)
            if kind is None or flags & OVERSIZED or message.exchange:
                raise command_invalid(f"a message of unknown kind {message.routing_key!r} or size")
            if not self._peers.heard(link, kind, message.body):
                raise channel_error("it publishes on a channel that is not open")
