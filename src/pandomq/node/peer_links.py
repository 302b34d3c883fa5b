"""The links to all other brokers: which are up, what goes over them, and who is told.

A broker is *linked* when it can be published to (`dialing`) and publishes here (`peer_door`). When one direction ends
the other is ended, too, so that both ends see the same. What happens on links is gathered, in order, and told by `tell`
once the node knows what time it is: a message may be the last that its sender had to say before it went.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple, assert_never

from pandomq.cluster.founding_messages import BadFoundingMessage
from pandomq.cluster.introduction import GOOD_BYE
from pandomq.cluster.limits import LINK_HEARTBEAT_S, PEERS_MAX
from pandomq.cluster.load import BadLoadMessage
from pandomq.cluster.parcels import Kind
from pandomq.cluster.serving import BadServingMessage, decode_serving
from pandomq.node.loads import LoadTalk
from pandomq.node.output import Abort, Close, HangUp, PeerControl
from pandomq.node.own_hello import OwnHello
from pandomq.node.passages import Passages
from pandomq.node.peer import Peer
from pandomq.node.peer_dialing import PeerDialing
from pandomq.node.relays import Relays
from pandomq.node.serving import Serving, hosts_before
from pandomq.node.target import DialedPeer, PeerWrites, Way
from pandomq.replica.messages import BadMessage

if TYPE_CHECKING:
    from random import Random

    from pandomq.cluster.hello import Hello
    from pandomq.node.disk_log import DiskLog
    from pandomq.node.link import Link
    from pandomq.node.links import Links
    from pandomq.node.settings import NodeSettings
    from pandomq.node.view_records import PeerLinkView

log = logging.getLogger("pandomq")


class Up(NamedTuple):
    name: str


class Down(NamedTuple):
    name: str
    by_peer: bool


class Mail(NamedTuple):
    name: str
    kind: Kind
    data: bytes


class PeerLinks:
    """Only for a broker that has a cluster key."""

    def __init__(self, settings: NodeSettings, links: Links, disk: DiskLog, random: Random) -> None:
        self._name = settings.name
        self._settings = settings.cluster
        self._links = links
        self._disk = disk
        self._replication = disk.replication
        own_data = (settings.data.advertised, settings.data.advertised_tls)
        self._replication.notices.advertise(settings.name, settings.cluster.advertise, own_data)
        self._own = OwnHello(settings, disk, random)
        self.hello = self._own.say
        self.passages = Passages(settings.cluster.key, self.hello)
        self.relays = Relays(links, self._direct_place_of)
        self.dialing = PeerDialing(settings.cluster.key, self.hello, self, self.passages, random)
        self._peers: dict[str, Peer] = {}
        self._members: object = None
        self._introduced: set[str] = set()
        self._resumed: list[DialedPeer] = []
        self._news: list[Up | Down | Mail] = []
        self._outgoing: list[tuple[str, Kind, bytes]] = []
        self.serving = Serving(
            self._replication,
            disk.held,
            settings.cluster.replica.lease_ms,
            lambda name, data: self.send(name, Kind.SERVING, data),
        )
        self._load_talk = LoadTalk(
            settings.name,
            self._replication.notices.loads,
            lambda: links.count,
            lambda name, data: self.send(name, Kind.LOAD, data),
        )

    @property
    def key(self) -> bytes:
        return self._settings.key

    def way_to(self, name: str) -> Way:
        """How a broker is dialed, this one among them: as the link to it goes. Nowhere if that is not known."""
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

    # Who there is.

    def tick(self, now_ms: int) -> None:
        """To be called some times a second, once the store is open."""
        for link in self._links.take_dropped_peers():
            self.accepted_lost(link, now_ms, by_peer=False, reason="no sign of life from it for two heartbeats")
        if self._members is not self._replication.notices.membership:
            self._members = self._replication.notices.membership
            self._get_to_know(now_ms)
        self._load_talk.tick(now_ms)
        self.passages.tick(now_ms)
        self.relays.tick(now_ms)
        # Who is linked may know no more than this broker does: until the primaries are known all are asked.
        stranger = not self._members.names
        self.dialing.tick(now_ms, lonely=stranger or not any(peer.linked for peer in self._peers.values()))

    def _get_to_know(self, now_ms: int) -> None:
        configured = {str(member.name): member.address for member in self._settings.primaries}
        members = {
            str(name): configured.get(name) or member.address
            for name, member in self._replication.notices.membership.members.items()
        } or configured
        for name, address in members.items():
            if name != self._name:
                self._peer(name, now_ms)
                self.dialing.aim(name, address, now_ms)
        # Who was given up by a forced promotion may have been told to go on, too, and not look for this broker, either.
        given_up = [address for name, address in configured.items() if name not in members and name != self._name]
        for address in (*self._settings.join, *given_up):
            self.dialing.aim("", address, now_ms)
        for peer in [peer for peer in self._peers.values() if peer.name not in members]:
            self._forget_stranger(peer)

    def _peer(self, name: str, now_ms: int) -> Peer:
        return self._peers.setdefault(name, Peer(name, now_ms))

    def _is_member(self, name: str) -> bool:
        """As far as this broker knows: from the log, by its configuration, or from what it heard when it came."""
        names = self._replication.notices.membership.names
        return name in (names or {member.name for member in self._settings.primaries} or self._introduced)

    def _forget_stranger(self, peer: Peer) -> None:
        """Who is no member is known while it is there, and not looked for when it is gone."""
        if peer.dialed is None and peer.accepted is None and not self._is_member(peer.name):
            self._peers.pop(peer.name, None)
            self.dialing.forget(peer.name)
            self._replication.notices.forget(peer.name)

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
        """What a broker says of itself, and of others."""
        peer.hello = hello
        self._replication.notices.advertise(hello.name, hello.amqp, (hello.data, hello.data_tls))
        if not self._replication.notices.membership.names:
            self._introduced = {name for name, _ in hello.members} or self._introduced
            for name, address in hello.members:
                if address and name not in self.dialing.targets and name != self._name:
                    self.dialing.aim(name, address, now_ms)

    # The other: this broker was dialed.

    def objection(self, hello: Hello, now_ms: int) -> str | None:
        """Why who proved to be this broker is not let in all the same; None if it is."""
        if self._settings.observer and not self._is_member(hello.name) and hello.name not in self.dialing.targets:
            # Whom it dials itself may be a member of whom it has not heard yet.
            return f"{self._name} is a secondary, and is linked to primaries only: {self._own.where_primaries_are}"
        peer = self._peers.get(hello.name)
        if peer is None:
            return "this broker is linked to as many others as it can be" if len(self._peers) >= PEERS_MAX else None
        accepted = peer.accepted
        if accepted is None or accepted.hello is None or accepted.hello.life == hello.life:
            return None
        if accepted.connection.silent_ms(now_ms) > LINK_HEARTBEAT_S * 1_000:
            # Its machine is gone, or the way to it, and this is its successor.
            return None
        return f"another broker named {hello.name} is linked to {self._name}"

    def accepted(self, link: Link, hello: Hello, now_ms: int) -> None:
        """The broker that said this hello, and proved it, publishes on this connection."""
        peer = self._peer(hello.name, now_ms)
        if peer.accepted is not None:
            # A newer connection of the same broker: the older one is dead, though nobody said so.
            if peer.linked:
                self._unlink(peer, "it has connected anew", now_ms, by_peer=True)
            self._drop_accepted(peer, now_ms)
        peer.accepted = link
        self._listen_to(peer, hello, now_ms)
        target = self.dialing.targets.get(hello.name)
        address = hello.address if target is None else target.address
        if address:
            self.dialing.came(hello.name, address, hello.through, now_ms)
        self._try_link(peer, now_ms)

    def heard(self, link: Link, kind: Kind, data: bytes) -> bool:
        """A message of the broker at the other end; False if it may not speak."""
        assert link.hello is not None
        peer = self._peers.get(link.hello.name)
        if peer is None or peer.accepted is not link:
            return False
        if peer.linked:
            self._news.append(Mail(peer.name, kind, data))
        else:
            peer.keep(kind, data)
        return True

    def accepted_lost(self, link: Link, now_ms: int, *, by_peer: bool, reason: str) -> None:
        """Nothing more comes on this connection."""
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

    # Both.

    def _try_link(self, peer: Peer, now_ms: int) -> None:
        if peer.dialed is not None and peer.accepted is not None and not peer.linked:
            accepted = peer.accepted.hello
            peer.linked, peer.since_ms = True, now_ms
            peer.through = peer.dialed.through or ("" if accepted is None else accepted.through)
            by_way = f", by way of {peer.through}" if peer.through else ""
            log.info("linked with %s at %s%s", peer.name, peer.dialed.address, by_way)
            self._news.append(Up(peer.name))
            self._news += (Mail(peer.name, kind, data) for kind, data in peer.take_early())

    def _unlink(self, peer: Peer, reason: str, now_ms: int, *, by_peer: bool) -> None:
        """One direction is gone; the other goes with it."""
        peer.linked, peer.since_ms = False, now_ms
        level = logging.INFO if reason.startswith(GOOD_BYE) else logging.WARNING
        log.log(level, "no longer linked with %s: %s", peer.name, reason)
        # If it went through another broker, it may have been that one who hung up; and then this end may know of it
        # before the other does, which counts on it until then.
        self._news.append(Down(peer.name, by_peer and not peer.through))
        peer.forget_traffic()
        self._drop_accepted(peer, now_ms)
        dialed, peer.dialed = peer.dialed, None
        if dialed is not None:
            self.dialing.hang_up(dialed, reason, now_ms)

    def part(self, reason: str) -> tuple[PeerWrites, list[PeerControl]]:
        """This life of the broker ends. What it has said is still sent."""
        writes = self.take_writes()
        for peer in self._peers.values():
            if peer.dialed is not None:
                writes += [(peer.dialed, part) for part in peer.take_waiting()]
            if peer.accepted is not None:
                peer.accepted.gone = True
                self._links.controls.append(Close(peer.accepted))
        self._peers.clear()
        writes += self.dialing.part(reason)
        controls = [*self.dialing.take_controls(), *self.relays.part()]
        return writes, [control for control in controls if isinstance(control, HangUp)]

    # What is said.

    def took_office(self) -> None:
        """This broker is root now."""
        hosts = hosts_before(self._replication, self._name)
        self.serving.took_office(hosts, with_fronts=self._settings.access == "proxy")

    def tell(self, now_ms: int, monotonic_ms: int) -> None:
        """Passes on what happened, in order."""
        self.serving.note_time(monotonic_ms)
        while self._news:
            news, self._news = self._news, []
            for item in news:
                match item:
                    case Up(name):
                        self._replication.connected(name)
                        self._disk.foundation.connected(name)
                        self._load_talk.connected(name)
                    case Down(name, by_peer):
                        self._replication.disconnected(name, by_peer=by_peer)
                        self._disk.foundation.disconnected(name)
                        self._load_talk.disconnected(name)
                    case Mail():
                        self._pass_on(item, now_ms)
                    case _:
                        assert_never(item)

    def _pass_on(self, mail: Mail, now_ms: int) -> None:
        try:
            match mail.kind:
                case Kind.REPLICA:
                    self._replication.received(mail.name, mail.data)
                case Kind.FOUNDING:
                    self._disk.foundation.received(mail.name, mail.data)
                case Kind.SERVING:
                    self.serving.received(mail.name, decode_serving(mail.data))
                case Kind.LOAD:
                    self._load_talk.received(mail.name, mail.data)
                case _:
                    assert_never(mail.kind)
        except (BadMessage, BadFoundingMessage, BadServingMessage, BadLoadMessage) as bad:
            peer = self._peers.get(mail.name)
            if peer is not None and peer.linked:
                self._unlink(peer, f"it sent what cannot be read: {bad}", now_ms, by_peer=False)

    def send(self, name: str, kind: Kind, data: bytes) -> None:
        """With the next step. It may be lost."""
        self._outgoing.append((name, kind, data))

    def take_writes(self) -> PeerWrites:
        """What the replica wants said, and all else."""
        writes: PeerWrites = []
        for dialed in self._resumed:
            peer = self._peers.get(dialed.name)
            if peer is not None and peer.dialed is dialed and not dialed.writing_paused:
                writes += [(dialed, part) for part in peer.take_waiting()]
        self._resumed.clear()
        outgoing, self._outgoing = self._outgoing, []
        for name, kind, data in outgoing:
            self._post(name, kind, data, writes)
        for name, data in self._replication.take_sends():
            self._post(name, Kind.REPLICA, data, writes)
        for name, data in self._disk.foundation.take_sends():
            self._post(name, Kind.FOUNDING, data, writes)
        self.dialing.take_writes(writes)
        self.passages.take_writes(writes)
        return writes

    def _post(self, name: str, kind: Kind, data: bytes, writes: PeerWrites) -> None:
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


def linked_to_others(settings: NodeSettings, links: Links, disk: DiskLog, random: Random) -> PeerLinks | None:
    """None for a broker without a cluster key: it neither dials others nor lets them in."""
    return PeerLinks(settings, links, disk, random) if settings.cluster.key else None
