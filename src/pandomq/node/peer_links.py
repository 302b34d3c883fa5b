"""The links to all other brokers: who is dialed when, which are up, and what goes over them.

A broker is *linked* when it can be published to (dialed) and publishes here (accepted). When one direction ends the
other is ended, too, so that both ends see the same. What happens on links is gathered, in order, and told by `tell`
once the node knows what time it is: a message may be the last that its sender had to say before it went.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple, assert_never

from pandomq import __version__
from pandomq.cluster.dialer import Dialer, LinkRefused
from pandomq.cluster.hello import OLDEST_VERSION, VERSION, Hello
from pandomq.cluster.limits import (
    LINK_HEARTBEAT_S,
    NONCE_BYTES,
    PEERS_MAX,
    REDIAL_MS_MAX,
    REDIAL_MS_MIN,
    REFUSED_REDIAL_MS,
)
from pandomq.cluster.parcels import Kind, Octets
from pandomq.node.output import Abort, Close, Dial, HangUp
from pandomq.node.peer import Dialed, LinkView, Peer
from pandomq.replica.messages import BadMessage

if TYPE_CHECKING:
    from random import Random

    from pandomq.node.disk_log import DiskLog
    from pandomq.node.link import Link
    from pandomq.node.links import Links
    from pandomq.node.settings import NodeSettings

log = logging.getLogger("pandomq")

PeerWrites = list[tuple[Dialed, Octets]]

CLOSED_BY_PEER: Final = "it closed the connection"


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
        self._random = random
        self.life = f"{random.getrandbits(128):032x}"
        self._peers: dict[str, Peer] = {}
        self._members: object = None
        self._controls: list[Dial | HangUp] = []
        self._talking: dict[Dialed, None] = {}
        self._resumed: list[Dialed] = []
        self._news: list[Up | Down | Mail] = []
        self._outgoing: list[tuple[str, Kind, bytes]] = []

    @property
    def key(self) -> bytes:
        return self._settings.key

    def hello(self, expected: str = "") -> Hello:
        """For one connection."""
        settings = self._settings
        own = next((member.address for member in settings.primaries if member.name == self._name), "")
        return Hello(
            oldest=OLDEST_VERSION,
            newest=VERSION,
            name=self._name,
            nonce=self._random.randbytes(NONCE_BYTES),
            life=self.life,
            expected=expected,
            cluster_id=self._disk.cluster_id if self._replication.notices.membership.names else "",
            address=own or settings.advertise,
            amqp=settings.advertise,
            http=settings.http,
            version=__version__,
        )

    def view(self) -> tuple[LinkView, ...]:
        return tuple(self._peers[name].view() for name in sorted(self._peers))

    # Who there is.

    def tick(self, now_ms: int) -> None:
        """To be called some times a second, once the store is open."""
        for link in self._links.take_dropped_peers():
            self.accepted_lost(link, now_ms, by_peer=False, reason="no sign of life from it for two heartbeats")
        if self._members is not self._replication.notices.membership:
            self._members = self._replication.notices.membership
            self._get_to_know(now_ms)
        for peer in list(self._peers.values()):
            dialed = peer.dialed
            if dialed is None:
                if peer.address and now_ms >= peer.redial_ms:
                    self._dial(peer)
            elif dialed.dialer is not None:
                try:
                    dialed.dialer.tick(now_ms)
                except LinkRefused as refused:
                    self._give_up(dialed, refused.reason, now_ms, by_peer=False, lasting=refused.lasting)
                else:
                    self._talking[dialed] = None

    def _get_to_know(self, now_ms: int) -> None:
        configured = {str(member.name): member.address for member in self._settings.primaries}
        members = {
            str(name): configured.get(name) or member.address
            for name, member in self._replication.notices.membership.members.items()
        } or configured
        for name, address in members.items():
            if name != self._name:
                self._peer(name, now_ms).address = address
        for peer in [peer for peer in self._peers.values() if peer.name not in members]:
            # No member any more: it may stay while it is linked, but nobody looks for it.
            peer.address = ""
            self._forget_stranger(peer)

    def _peer(self, name: str, now_ms: int) -> Peer:
        return self._peers.setdefault(name, Peer(name, "", now_ms))

    def _forget_stranger(self, peer: Peer) -> None:
        if not peer.address and peer.dialed is None and peer.accepted is None:
            self._peers.pop(peer.name, None)

    # Dialing.

    def _dial(self, peer: Peer) -> None:
        peer.dialed = Dialed(peer.name, peer.address)
        self._controls.append(Dial(peer.dialed))

    def dialed(self, dialed: Dialed, now_ms: int) -> None:
        """There is a connection now; `dialed.socket` is set."""
        if dialed.gone:
            self._controls.append(HangUp(dialed))
            return
        dialed.dialer = Dialer(self.key, self.hello(dialed.name), now_ms)
        self._talking[dialed] = None

    def not_dialed(self, dialed: Dialed, reason: str, now_ms: int) -> None:
        if not dialed.gone:
            self._give_up(dialed, reason, now_ms, by_peer=False, lasting=False)

    def receive(self, dialed: Dialed, data: memoryview, now_ms: int) -> None:
        """From the other end of a connection that was dialed here."""
        if dialed.gone or dialed.dialer is None:
            return
        was_open = dialed.open
        self._talking[dialed] = None
        try:
            dialed.dialer.receive(data)
        except LinkRefused as refused:
            self._give_up(dialed, refused.reason, now_ms, by_peer=was_open, lasting=refused.lasting)
            return
        if dialed.open and not was_open:
            peer = self._peers[dialed.name]
            peer.hello = dialed.dialer.theirs
            self._try_link(peer, now_ms)

    def lost(self, dialed: Dialed, now_ms: int) -> None:
        """The socket is closed, whoever closed it."""
        if not dialed.gone:
            self._give_up(dialed, CLOSED_BY_PEER, now_ms, by_peer=True, lasting=False)

    def _give_up(self, dialed: Dialed, reason: str, now_ms: int, *, by_peer: bool, lasting: bool) -> None:
        dialed.gone = True
        if dialed.socket is not None:
            self._controls.append(HangUp(dialed))
        peer = self._peers.get(dialed.name)
        if peer is None or peer.dialed is not dialed:
            return
        peer.dialed = None
        wait_ms = REFUSED_REDIAL_MS if lasting else min(REDIAL_MS_MIN << min(peer.failures, 10), REDIAL_MS_MAX)
        # Not all at the same moment, again and again.
        peer.redial_ms = now_ms + wait_ms + self._random.randrange(wait_ms // 2)
        peer.failures += 1
        if peer.linked:
            self._unlink(peer, reason, now_ms, by_peer=by_peer)
        elif reason != peer.trouble:
            log.log(
                logging.WARNING if lasting else logging.INFO, "no link to %s at %s: %s", peer.name, peer.address, reason
            )
        peer.trouble = reason
        self._forget_stranger(peer)

    # Being dialed.

    def knows_better(self, hello: Hello, now_ms: int) -> str | None:
        """Why who proved to be this broker is not let in; None if it is."""
        peer = self._peers.get(hello.name)
        if peer is None:
            return "this broker is linked to as many others as it can be" if len(self._peers) >= PEERS_MAX else None
        accepted = peer.accepted
        if accepted is None or peer.hello is None or peer.hello.life == hello.life:
            return None
        if accepted.connection.silent_ms(now_ms) > LINK_HEARTBEAT_S * 1_000:
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
        peer.accepted, peer.hello = link, hello
        if not peer.address:
            peer.address, peer.redial_ms = hello.address, now_ms
        # It is there: whatever kept it from being dialed may be over.
        peer.redial_ms = min(peer.redial_ms, now_ms + REDIAL_MS_MIN)
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
        if peer is None or peer.accepted is not link:
            return
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
        if peer.complete and not peer.linked:
            peer.linked, peer.since_ms, peer.failures, peer.trouble = True, now_ms, 0, ""
            log.info("linked with %s at %s", peer.name, peer.address)
            self._news.append(Up(peer.name))
            self._news += (Mail(peer.name, kind, data) for kind, data in peer.take_early())

    def _unlink(self, peer: Peer, reason: str, now_ms: int, *, by_peer: bool) -> None:
        """One direction is gone; the other goes with it."""
        peer.linked, peer.since_ms, peer.trouble = False, now_ms, reason
        log.warning("no longer linked with %s: %s", peer.name, reason)
        self._news.append(Down(peer.name, by_peer))
        peer.forget_traffic()
        self._drop_accepted(peer, now_ms)
        if peer.dialed is not None:
            self._give_up(peer.dialed, reason, now_ms, by_peer=by_peer, lasting=False)

    def part(self, reason: str) -> tuple[PeerWrites, list[Dial | HangUp]]:
        """This life of the broker ends. What it has said is still sent."""
        writes = self.take_writes()
        for peer in self._peers.values():
            if peer.dialed is not None:
                if peer.dialed.dialer is not None and not peer.dialed.gone:
                    writes += [(peer.dialed, part) for part in peer.take_waiting()]
                    peer.dialed.dialer.close(reason)
                    writes.append((peer.dialed, peer.dialed.dialer.data_to_send()))
                    self._controls.append(HangUp(peer.dialed))
                peer.dialed.gone = True
            if peer.accepted is not None and not peer.accepted.gone:
                peer.accepted.gone = True
                self._links.controls.append(Close(peer.accepted))
        self._peers.clear()
        return writes, [control for control in self.take_controls() if isinstance(control, HangUp)]

    # What is said.

    def tell(self, now_ms: int) -> None:
        """Passes on what happened, in order."""
        while self._news:
            news, self._news = self._news, []
            for item in news:
                match item:
                    case Up(name):
                        self._replication.connected(name)
                    case Down(name, by_peer):
                        self._replication.disconnected(name, by_peer=by_peer)
                    case Mail(name, _, data):
                        self._pass_on(name, data, now_ms)
                    case _:
                        assert_never(item)

    def _pass_on(self, name: str, data: bytes, now_ms: int) -> None:
        try:
            self._replication.received(name, data)
        except BadMessage as bad:
            peer = self._peers.get(name)
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
        if self._outgoing:
            outgoing, self._outgoing = self._outgoing, []
            for name, kind, data in outgoing:
                self._post(name, kind, data, writes)
        if self._talking:
            for dialed in self._talking:
                data = b"" if dialed.dialer is None else dialed.dialer.data_to_send()
                if data:
                    writes.append((dialed, data))
            self._talking.clear()
        for name, data in self._replication.take_sends():
            self._post(name, Kind.REPLICA, data, writes)
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

    def take_controls(self) -> list[Dial | HangUp]:
        controls, self._controls = self._controls, []
        return controls

    def resume(self, dialed: Dialed) -> None:
        """Its socket takes more again."""
        dialed.writing_paused = False
        self._resumed.append(dialed)


def linked_to_others(settings: NodeSettings, links: Links, disk: DiskLog, random: Random) -> PeerLinks | None:
    """None for a broker without a cluster key: it neither dials others nor lets them in."""
    if not settings.cluster.key:
        return None
    return PeerLinks(settings, links, disk, random)
