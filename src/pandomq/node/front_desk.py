"""Serves clients in the root's name: the front, its tunnels, and what it learns of the log.

Beside the broker whose state is the log's there is a second one, the front, for those who come while this broker is not
the root (`access = "proxy"`). It has the same configuration, told by `feed`, and asks the root for all else. Its
clients stay its own when this broker becomes root: then the tunnels lead to the other broker of the same process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.cluster.proxy.awaiting import no_root
from pandomq.cluster.proxy.front import Front
from pandomq.cluster.proxy.front_client import FrontClient
from pandomq.cluster.proxy.tunnel import Tunnel
from pandomq.node.cluster_view import is_in_step
from pandomq.node.configuration_feed import ConfigurationFeed
from pandomq.node.desk import Desk
from pandomq.node.endings import for_client
from pandomq.node.output import HangUp
from pandomq.node.settings import broker_limits
from pandomq.node.tunnels import Tunnels
from pandomq.wire.codec import encode_frame, encode_method

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.broker import Broker, Outcome
    from pandomq.broker.client import Client
    from pandomq.node.backlog import Batch
    from pandomq.node.disk_log import DiskLog
    from pandomq.node.endings import Endings
    from pandomq.node.intake import Intake
    from pandomq.node.links import Links, Writes
    from pandomq.node.output import PeerControl
    from pandomq.node.peer_links import PeerLinks
    from pandomq.node.settings import NodeSettings
    from pandomq.node.target import PeerWrites


class FrontDesk:
    __slots__ = (
        "_broker",
        "_caught_up",
        "_desk",
        "_dirty",
        "_disk",
        "_endings",
        "_intake",
        "_links",
        "_root_wait_ms",
        "_rootless_ms",
        "_serving",
        "_unserved",
        "feed",
        "front",
        "tunnels",
    )

    def __init__(
        self,
        settings: NodeSettings,
        broker: Broker,
        disk: DiskLog,
        links: Links,
        peers: PeerLinks,
        random: Random,
        now_ms: int,
    ) -> None:
        self.front = Front(
            node_name=settings.name,
            encode=encode_frame,
            encode_payload=encode_method,
            random=random,
            limits=broker_limits(settings),
            root_wait_ms=settings.cluster.root_wait_ms,
        )
        self._broker = broker
        self._disk = disk
        self._links = links
        self._serving = peers.serving
        self._root_wait_ms = settings.cluster.root_wait_ms
        self._rootless_ms: int | None = None
        """Since when no root is known."""
        self._caught_up = False
        self._unserved: dict[Client, int] = {}
        """Since when clients wait that have asked something while there was no lease."""
        self._desk = Desk(self.front, links)
        self._dirty: list[Tunnel] = []
        self.feed = ConfigurationFeed(broker, self.front)
        self.tunnels = Tunnels(self.front, links, peers, now_ms)
        self._intake: Intake
        self._endings: Endings

    def attend(self, intake: Intake, endings: Endings) -> None:
        """Where clients' words come from, and where their connections end."""
        self._intake, self._endings = intake, endings

    # Who is served.

    def host(self) -> Front | None:
        """Who serves a client that comes now, when the broker itself does not. Nobody before it has once had what the
        root has, or when there was no root for so long that clients have heard so."""
        missing_ms = 0 if self._rootless_ms is None else self.front.now_ms - self._rootless_ms
        return self.front if self._caught_up and missing_ms < self._root_wait_ms else None

    def may_part(self, client: Client) -> bool:
        """Who says good-bye goes when the root knows all that it said before."""
        assert isinstance(client, FrontClient)
        return client not in self._desk.backlog and (client.gone or self.front.part(client, self.front.now_ms))

    # Steps.

    def step(self, now_ms: int) -> bool:
        """Handles what was gathered; True if there is more to do for now."""
        self._learn()
        front = self.front
        self._lead_to_root(now_ms)
        self._serving.turn(self.feed.changed_index if front.clients else None, attached=self._is_attached())
        if not front.ready:
            return False
        self._look_for_root(now_ms)
        if front.next_deadline_ms <= now_ms:
            self._close(front.tick(now_ms))
        self._lead_to_root(now_ms)
        gathered = self._intake.take_batch(front)
        if not self._serving.holds:
            self._keep_waiting(gathered, now_ms)
        elif self._desk.has_work(gathered):
            self._unserved.clear()
            self._close(self._desk.handle(gathered, now_ms))
        self.tunnels.settle()
        self._lead_to_root(now_ms)
        return self._desk.ready if self._serving.holds else front.active

    def _lead_to_root(self, now_ms: int) -> None:
        self.tunnels.turn(self._root, self._disk.replication.notices.term, now_ms)

    def _is_attached(self) -> bool:
        """Who is root now knows what private queues here are bound to, and what clients here have acked."""
        leads = self.tunnels.leads_to_root
        return not self.front.unsettled and all(
            trunk.settled and leads(trunk.tunnel) for trunk in self.front.trunks.values()
        )

    def _keep_waiting(self, gathered: Batch, now_ms: int) -> None:
        """Without a lease nobody is served: what this broker knows may be out of date. What the root says goes on."""
        self._desk.postpone(gathered)
        overdue = False
        for client in self._desk.backlog.clients():
            since_ms = self._unserved.setdefault(client, now_ms)
            if now_ms - since_ms >= self._root_wait_ms and not client.failed:
                self.front.faults.close_client(client, no_root(self._root_wait_ms))
                overdue = True
        if overdue or self.front.active:
            self._close(self.front.handle((), now_ms))

    def _learn(self) -> None:
        replication = self._disk.replication
        if not self.front.ready:
            if not replication.in_office:
                self.feed.begin(self._disk.applied_index)
        elif replication.in_office:
            self.feed.committed(self._disk.commit_index)
        else:
            self.feed.applied(self._disk.applied_index)

    @property
    def _root(self) -> str | None:
        return self._disk.replication.notices.root

    def _look_for_root(self, now_ms: int) -> None:
        self.front.now_ms = now_ms
        if self._root is None:
            self._rootless_ms = now_ms if self._rootless_ms is None else self._rootless_ms
        else:
            self._rootless_ms = None
            # A cluster that has just begun has no users yet.
            begun = self._broker.state.had_users
            self._caught_up = self._caught_up or (begun and is_in_step(self._disk.replication))

    def _close(self, outcome: Outcome) -> None:
        for client, fault in outcome.closing:
            link = self._links.of_client.get(client)
            if link is not None:
                self._endings.add_first(link, for_client(link, fault))

    @property
    def next_deadline_ms(self) -> int:
        return min(self.front.next_deadline_ms, self.tunnels.next_deadline_ms)

    # What is said.

    def take_writes(self, writes: Writes) -> None:
        """To clients; for the root see below."""
        clients: list[Client] = []
        for owner in self.front.take_dirty():
            if isinstance(owner, Tunnel):
                self._dirty.append(owner)
            else:
                clients.append(owner)
        self._links.take_writes(clients, writes)

    def take_for_root(self, writes: PeerWrites, controls: list[PeerControl]) -> None:
        dirty, self._dirty = self._dirty, []
        writes += self.tunnels.take_writes(dirty)
        self.tunnels.regulate()
        controls += self.tunnels.take_controls()

    def part(self, reason: str, writes: PeerWrites, controls: list[PeerControl]) -> None:
        """This life of the broker ends, and so does the front."""
        writes += self.tunnels.part(reason)
        controls += [control for control in self.tunnels.take_controls() if isinstance(control, HangUp)]


def front_desk(
    settings: NodeSettings,
    broker: Broker,
    disk: DiskLog | None,
    links: Links,
    peers: PeerLinks | None,
    random: Random,
    now_ms: int,
) -> FrontDesk | None:
    """None for a broker that redirects clients, or that is alone."""
    if settings.cluster.access != "proxy" or disk is None or peers is None:
        return None
    return FrontDesk(settings, broker, disk, links, peers, random, now_ms)
