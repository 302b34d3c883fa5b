"""The links to all other brokers: which are up, their messages, and the receivers of these.

A broker is *linked* when this one can publish to it (`dialing`) and it publishes here (`acceptor`). When one direction
ends the other is ended, too, so that both ends see the same. Events on links are gathered, in order, and `tell` reports
them once the node knows the time: a message may be the last one that its sender sent before it ended.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, assert_never

from pandomq.cluster.founding_messages import BadFoundingMessage
from pandomq.cluster.introduction import CLOSED_WITH_REASON
from pandomq.cluster.limits import ASK_AGAIN_MS, LINK_HEARTBEAT_S, PEERS_MAX
from pandomq.cluster.load import BadLoadMessage
from pandomq.cluster.passed_requests import BadPassedMessage
from pandomq.cluster.peer_messages import PeerMessageKind
from pandomq.cluster.serving import BadServingMessage, decode_serving
from pandomq.node.front.serving import Serving
from pandomq.node.output import Abort, Close, Control
from pandomq.node.peers.dial_target import DialedPeer, Way
from pandomq.node.peers.dialing import PeerDialing
from pandomq.node.peers.loads import LoadTalk
from pandomq.node.peers.own_hello import OwnHello
from pandomq.node.peers.passages import Passages
from pandomq.node.peers.peer import Down, Mail, Peer, Up
from pandomq.node.peers.relays import Relays
from pandomq.node.peers.requests import PeerRequests
from pandomq.replica.protocol.messages import BadMessage

if TYPE_CHECKING:
    from random import Random

    from pandomq.cluster.hello import Hello
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.log.disk_log import DiskLog
    from pandomq.node.output import Writes
    from pandomq.node.settings import NodeSettings
    from pandomq.node.views.records import PeerLinkView

log = logging.getLogger("pandomq")


class PeerLinks:
    """The links to other brokers, of a broker that has a cluster key."""

    def __init__(self, settings: NodeSettings, links: ClientLinks, disk: DiskLog, random: Random) -> None:
        self._name = settings.name
        self._settings = settings.cluster
        self._links = links
        self._disk = disk
        self._replication = disk.replication
        own_data = (settings.data.advertised, settings.data.advertised_tls)
        self._replication.knowledge.advertise(settings.name, settings.cluster.advertise, own_data)
        self._own = OwnHello(settings, disk, random)
        self.hello = self._own.say
        self.passages = Passages(settings.cluster.key, self.hello)
        self.relays = Relays(links, self._direct_place_of)
        self.dialing = PeerDialing(settings.cluster.key, self.hello, self, self.passages, random)
        self._peers: dict[str, Peer] = {}
        self._members: object = None
        self._introduced: set[str] = set()
        self._ask_again_ms = 0
        self._resumed: list[DialedPeer] = []
        self._news: list[Up | Down | Mail] = []
        self._outgoing: list[tuple[str, PeerMessageKind, bytes]] = []
        self.requests = PeerRequests(self._peers.get, lambda name, data: self.send(name, PeerMessageKind.HTTP, data))
        self.serving = Serving(
            self._replication,
            disk.broker,
            settings.cluster.replica.lease_ms,
            lambda name, data: self.send(name, PeerMessageKind.SERVING, data),
        )
        self._load_talk = LoadTalk(
            settings.name,
            self._replication.knowledge.loads,
            lambda: links.count,
            lambda name, data: self.send(name, PeerMessageKind.LOAD, data),
        )

    @property
    def key(self) -> bytes:
        return self._settings.key

    def way_to(self, name: str) -> Way:
        """The path by which a broker is dialed, this one among them: that of its link; empty if it is unknown."""
        target = self.dialing.targets.get(name)
        if name == self._name or target is None:
            return Way(self._own.address if name == self._name else "")
        dialed = target.dialed
        if dialed is not None and dialed.open and dialed.through:
            return Way(dialed.address, dialed.through)
        return Way(target.address)

    def _direct_place_of(self, name: str) -> str:
        """Empty unless there is a direct link to it."""
        peer, target = self._peers.get(name), self.dialing.targets.get(name)
        is_direct = peer is not None and peer.linked and not peer.through
        return target.address if is_direct and target is not None else ""

    def may_relay(self, name: str) -> bool:
        return self._is_member(name) and bool(self._direct_place_of(name))

    def view(self) -> tuple[PeerLinkView, ...]:
        return tuple(self._peers[name].view(self.dialing.targets.get(name)) for name in sorted(self._peers))

    # Which brokers there are.

    def tick(self, now_ms: int) -> None:
        """To be called several times per second, once the store is open."""
        for link in self._links.take_aborted_peers():
            self.accepted_lost(
                link, now_ms, by_peer=False, reason="nothing was received from the peer for two heartbeat intervals"
            )
        if self._members is not self._replication.knowledge.membership:
            self._members = self._replication.knowledge.membership
            self._get_to_know(now_ms)
        self._load_talk.tick(now_ms)
        self.passages.tick(now_ms)
        self.relays.tick(now_ms)
        # A linked broker may know no more than this one does: until the primaries are known all addresses are dialed.
        lonely = not self._members.names or not any(peer.linked for peer in self._peers.values())
        self._seek_root(now_ms)
        self.dialing.tick(now_ms, lonely=lonely, rootless=self._replication.knowledge.root is None)

    def _seek_root(self, now_ms: int) -> None:
        """Asks linked brokers for the members while no root is known: the known primaries may have been replaced."""
        if self._replication.knowledge.root is not None:
            self._ask_again_ms = now_ms + ASK_AGAIN_MS
        elif now_ms >= self._ask_again_ms:
            self._ask_again_ms = now_ms + ASK_AGAIN_MS
            for name in [peer.name for peer in self._peers.values() if peer.linked]:
                self.dialing.ask_again(name)

    def _get_to_know(self, now_ms: int) -> None:
        configured = {str(member.name): member.address for member in self._settings.primaries}
        members = {
            str(name): configured.get(name) or member.address
            for name, member in self._replication.knowledge.membership.members.items()
        } or configured
        for name, address in members.items():
            if name != self._name:
                self._peer(name, now_ms)
                self.dialing.aim(name, address, now_ms)
        # A broker that a forced promotion declared dead may have been promoted by force, too; then it does not dial
        # this one.
        given_up = [address for name, address in configured.items() if name not in members and name != self._name]
        for address in (*self._settings.join, *given_up):
            self.dialing.aim("", address, now_ms)
        for peer in [peer for peer in self._peers.values() if peer.name not in members]:
            self._forget_stranger(peer)

    def _peer(self, name: str, now_ms: int) -> Peer:
        return self._peers.setdefault(name, Peer(name, now_ms))

    def _is_member(self, name: str) -> bool:
        """Whether the broker is a member as far as this one knows: from the log, by its configuration, or from a
        hello."""
        names = self._replication.knowledge.membership.names
        return name in (names or {member.name for member in self._settings.primaries} or self._introduced)

    def _forget_stranger(self, peer: Peer) -> None:
        """A broker that is no member is known while it is linked, and not dialed afterwards."""
        if peer.dialed is None and peer.accepted is None and not self._is_member(peer.name):
            self._peers.pop(peer.name, None)
            self.dialing.forget(peer.name)
            self._replication.knowledge.forget(peer.name)

    # One direction: this broker has dialed.

    def dial_opened(self, dialed: DialedPeer, hello: Hello, now_ms: int) -> None:
        peer = self._peer(hello.name, now_ms)
        peer.dialed = dialed
        self._listen_to(peer, hello, now_ms)
        self._try_link(peer, now_ms)

    def dial_ended(self, dialed: DialedPeer, reason: str, now_ms: int, *, by_peer: bool) -> None:
        peer = self._peers.get(dialed.name)
        if peer is not None and peer.dialed is dialed:
            peer.dialed = None
            if peer.linked:
                self._unlink(peer, reason, now_ms, by_peer=by_peer)
            self._forget_stranger(peer)

    def _listen_to(self, peer: Peer, hello: Hello, now_ms: int) -> None:
        """Takes a broker's hello, about itself and others."""
        # After a power loss the tunnels of its earlier life seem to be open for long, and deliveries in them are lost.
        self._links.abort_tunnels(lambda one: one.origin == hello.name and one.life != hello.life, now_ms)
        peer.hello = hello
        self._replication.knowledge.advertise(hello.name, hello.amqp, (hello.data, hello.data_tls))
        self.told(hello, now_ms)

    def told(self, hello: Hello, now_ms: int) -> None:
        """Takes the primaries that a broker names. A broker with a root knows them from the log."""
        knowledge = self._replication.knowledge
        if not knowledge.membership.names:
            self._introduced = {name for name, _ in hello.members} or self._introduced
        if knowledge.root is None:
            for name, address in hello.members:
                if address and name not in self.dialing.targets and name != self._name:
                    self.dialing.aim(name, address, now_ms)

    # The other direction: this broker was dialed.

    def objection(self, hello: Hello, now_ms: int) -> str | None:
        """The reason for which a proven broker is refused nevertheless; None if it is admitted."""
        if self._settings.observer and not self._is_member(hello.name) and hello.name not in self.dialing.targets:
            # A broker that it dials itself may be a member that it has not learned of yet.
            return f"{self._name} is a secondary and connects to primaries only: {self._own.where_primaries_are}"
        peer = self._peers.get(hello.name)
        if peer is None:
            return "this broker already has the maximum number of links" if len(self._peers) >= PEERS_MAX else None
        accepted = peer.accepted
        if accepted is None or accepted.hello is None or accepted.hello.life == hello.life:
            return None
        if accepted.connection.silent_ms(now_ms) > LINK_HEARTBEAT_S * 1_000:
            # The old machine, or the path to it, is lost, and this is its successor.
            return None
        # If the machine lost power and has restarted, its system resets the old connection as soon as something arrives
        # there; then the next attempt succeeds. Nothing else may be due to be sent for a second.
        accepted.connection.probe()
        self._links.talk(accepted)
        return f"another broker with the name {hello.name} is linked with {self._name}"

    def accepted(self, link: ClientLink, hello: Hello, now_ms: int) -> None:
        """The broker that sent and proved this hello publishes on this connection."""
        peer = self._peer(hello.name, now_ms)
        if peer.accepted is not None:
            # A newer connection of the same broker: the older one is dead, without an end of file.
            if peer.linked:
                self._unlink(peer, "the peer connected again", now_ms, by_peer=True)
            self._drop_accepted(peer, now_ms)
        peer.accepted = link
        self._listen_to(peer, hello, now_ms)
        target = self.dialing.targets.get(hello.name)
        address = hello.address if target is None else target.address
        if address:
            self.dialing.came(hello.name, address, hello.through, now_ms)
        self._try_link(peer, now_ms)

    def heard(self, link: ClientLink, kind: PeerMessageKind, data: bytes) -> bool:
        """Handles a message of the broker at the other end; False if it must not send messages."""
        assert link.hello is not None
        peer = self._peers.get(link.hello.name)
        if peer is None or peer.accepted is not link:
            return False
        if peer.linked:
            self._news.append(Mail(peer.name, kind, data))
        else:
            peer.keep(kind, data)
        return True

    def accepted_lost(self, link: ClientLink, now_ms: int, *, by_peer: bool, reason: str) -> None:
        """To be called when nothing more comes on this connection."""
        assert link.hello is not None
        peer = self._peers.get(link.hello.name)
        if peer is not None and peer.accepted is link:
            peer.accepted = None
            if peer.linked:
                self._unlink(peer, reason, now_ms, by_peer=by_peer)
            self._forget_stranger(peer)

    def _drop_accepted(self, peer: Peer, now_ms: int) -> None:
        if peer.accepted is not None:
            self._links.controls.append(Abort(peer.accepted))
            self._links.forget(peer.accepted, now_ms)
            peer.accepted = None

    # Both directions.

    def _try_link(self, peer: Peer, now_ms: int) -> None:
        if peer.dialed is not None and peer.accepted is not None and not peer.linked:
            accepted = peer.accepted.hello
            peer.linked, peer.since_ms = True, now_ms
            peer.through = peer.dialed.through or ("" if accepted is None else accepted.through)
            by_way = f", through {peer.through}" if peer.through else ""
            log.info("linked with broker %s at %s%s", peer.name, peer.dialed.address, by_way)
            self._news.append(Up(peer.name))
            self._news += (Mail(peer.name, kind, data) for kind, data in peer.take_early())

    def _unlink(self, peer: Peer, reason: str, now_ms: int, *, by_peer: bool) -> None:
        """One direction has ended; the other ends with it."""
        peer.linked, peer.since_ms = False, now_ms
        level = logging.INFO if reason.startswith(CLOSED_WITH_REASON) else logging.WARNING
        log.log(level, "link with broker %s lost: %s", peer.name, reason)
        # The link went through another broker, which may have closed it; then this end may know of it before the other
        # one does, which relies on the link until then.
        self._news.append(Down(peer.name, by_peer and not peer.through))
        peer.forget_traffic()
        self._drop_accepted(peer, now_ms)
        dialed, peer.dialed = peer.dialed, None
        if dialed is not None:
            self.dialing.hang_up(dialed, reason, now_ms)

    def close_all(self, reason: str) -> tuple[Writes, list[Control]]:
        """This node ends. Its output is still sent."""
        writes = self.take_writes()
        self.requests.close_all(reason)
        self._replication.knowledge.abandon_requests(reason)
        for peer in self._peers.values():
            if peer.dialed is not None:
                writes += [(peer.dialed, part) for part in peer.take_waiting()]
            if peer.accepted is not None:
                peer.accepted.gone = True
                self._links.controls.append(Close(peer.accepted))
        self._peers.clear()
        writes += self.dialing.close_all(reason)
        controls = [*self.dialing.take_controls(), *self.relays.close_all()]
        return writes, [control for control in controls if isinstance(control, Close)]

    # Output.

    def took_over(self) -> None:
        """To be called when this broker becomes root."""
        hosts = self.serving.hosts_before(self._name)
        self.serving.took_over(hosts, with_fronts=self._settings.access == "proxy")

    def tell(self, now_ms: int, monotonic_ms: int) -> None:
        """Reports the events, in order."""
        self.serving.note_time(monotonic_ms)
        while self._news:
            news, self._news = self._news, []
            for item in news:
                match item:
                    case Up(name):
                        self._replication.log.connected(name)
                        self._disk.foundation.connected(name)
                        self._load_talk.connected(name)
                    case Down(name, by_peer):
                        self._replication.log.disconnected(name, by_peer=by_peer)
                        self._disk.foundation.disconnected(name)
                        self._load_talk.disconnected(name)
                        self.requests.disconnected(name)
                    case Mail():
                        self._pass_on(item, now_ms)
                    case _:
                        assert_never(item)

    def _pass_on(self, mail: Mail, now_ms: int) -> None:
        try:
            match mail.kind:
                case PeerMessageKind.REPLICA:
                    self._replication.received(mail.name, mail.data)
                case PeerMessageKind.FOUNDING:
                    self._disk.foundation.received(mail.name, mail.data)
                case PeerMessageKind.SERVING:
                    self.serving.received(mail.name, decode_serving(mail.data))
                case PeerMessageKind.LOAD:
                    self._load_talk.received(mail.name, mail.data)
                case PeerMessageKind.HTTP:
                    self.requests.received(mail.name, mail.data)
                case _:
                    assert_never(mail.kind)
        except (BadMessage, BadFoundingMessage, BadServingMessage, BadLoadMessage, BadPassedMessage) as bad:
            peer = self._peers.get(mail.name)
            if peer is not None and peer.linked:
                self._unlink(peer, f"the peer sent a malformed message: {bad}", now_ms, by_peer=False)

    def send(self, name: str, kind: PeerMessageKind, data: bytes) -> None:
        """Sends with the next step. The message may be lost."""
        self._outgoing.append((name, kind, data))

    def take_writes(self) -> Writes:
        """Collects the replica's output, and all other output."""
        writes: Writes = []
        for dialed in self._resumed:
            peer = self._peers.get(dialed.name)
            if peer is not None and peer.dialed is dialed and not dialed.writing_paused:
                writes += [(dialed, part) for part in peer.take_waiting()]
        self._resumed.clear()
        outgoing, self._outgoing = self._outgoing, []
        for name, kind, data in outgoing:
            self._post(name, kind, data, writes)
        for name, data in self._replication.sends.take():
            self._post(name, PeerMessageKind.REPLICA, data, writes)
        for name, data in self._disk.foundation.take_sends():
            self._post(name, PeerMessageKind.FOUNDING, data, writes)
        self.dialing.take_writes(writes)
        self.passages.take_writes(writes)
        return writes

    def _post(self, name: str, kind: PeerMessageKind, data: bytes, writes: Writes) -> None:
        peer = self._peers.get(name)
        if peer is not None and peer.linked:
            dialed = peer.dialed
            assert dialed is not None and dialed.dialer is not None
            parts = peer.post(kind, data)
            if parts:
                dialed.dialer.wrote()
                writes += [(dialed, part) for part in parts]

    def dial_resumed(self, dialed: DialedPeer) -> None:
        self._resumed.append(dialed)


def linked_to_others(settings: NodeSettings, links: ClientLinks, disk: DiskLog, random: Random) -> PeerLinks | None:
    """None for a broker without a cluster key: it neither dials others nor accepts them."""
    return PeerLinks(settings, links, disk, random) if settings.cluster.key else None
