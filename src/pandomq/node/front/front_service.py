"""Serves clients while another broker is root: the front, its tunnels, and the front's input from the log.

Beside the broker whose state is the log's there is a second one, the front, for clients that connect while this broker
is not the root (`access = "proxy"`). It has the same configuration, from `feed`, and requests everything else from the
root. Its clients stay with it when this broker becomes root: then the tunnels lead to the other broker of the same
process.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pandomq.cluster.proxy.awaiting import no_root
from pandomq.cluster.proxy.front import Front
from pandomq.cluster.proxy.front_client import FrontClient
from pandomq.cluster.proxy.tunnel import Tunnel
from pandomq.node.broker_state import BrokerState
from pandomq.node.clients.closing import for_client
from pandomq.node.dispatcher import Dispatcher
from pandomq.node.front.configuration_feed import ConfigurationFeed
from pandomq.node.front.tunnels import Tunnels
from pandomq.node.output import Close
from pandomq.node.settings import broker_limits
from pandomq.wire.codec import encode_frame, encode_method

if TYPE_CHECKING:
    from random import Random

    from pandomq.broker.broker import BatchOutcome, Broker
    from pandomq.broker.client import Client
    from pandomq.node.clients.backlog import Batch
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.clients.closing import ClosingConnections
    from pandomq.node.clients.input_router import InputRouter
    from pandomq.node.log.disk_log import DiskLog
    from pandomq.node.output import Control, Writes
    from pandomq.node.peers.links import PeerLinks
    from pandomq.node.settings import NodeSettings


class FrontService:
    __slots__ = (
        "_broker",
        "_caught_up",
        "_closing",
        "_disk",
        "_dispatcher",
        "_input_router",
        "_links",
        "_root_serves",
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
        links: ClientLinks,
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
        """The time since when no root is known."""
        self._caught_up = False
        """Whether the front has once had all that a root had committed. This stays so in every later state of the
        broker."""
        self._root_serves = False
        """Whether the root was known to serve in the last step."""
        self._unserved: dict[Client, int] = {}
        """The times since when clients wait that have sent requests while there was no lease."""
        self._dispatcher = Dispatcher(self.front, links)
        self.feed = ConfigurationFeed(broker, self.front)
        self.tunnels = Tunnels(self.front, links, peers, now_ms)
        self._input_router: InputRouter
        self._closing: ClosingConnections

    def attend(self, input_router: InputRouter, closing: ClosingConnections) -> None:
        """The sources of the clients' inputs, and of the ends of their connections."""
        self._input_router, self._closing = input_router, closing

    # Which clients are served.

    def host(self) -> Front | None:
        """The broker for clients that connect now, when the main broker does not serve them. None before the front has
        once had the root's state, or when there was no root for so long that clients were refused."""
        missing_ms = 0 if self._rootless_ms is None else self.front.now_ms - self._rootless_ms
        return self.front if self._caught_up and missing_ms < self._root_wait_ms else None

    def has_lease(self) -> bool:
        return self._serving.holds

    def may_release(self, client: Client) -> bool:
        """A client that closes its connection is released when the root has everything that it sent before."""
        assert isinstance(client, FrontClient)
        return client not in self._dispatcher.backlog and (
            client.gone or self.front.may_release(client, self.front.now_ms)
        )

    # Steps.

    def step(self, now_ms: int) -> bool:
        """Handles what was gathered; True if there is more to do for now."""
        self._learn()
        front = self.front
        self.tunnels.turn(self._root, self._disk.replication.knowledge.term, now_ms)
        wants_lease = bool(front.clients) or self._input_router.awaits_lease
        self._serving.turn(self.feed.changed_index if wants_lease else None, attached=self._is_attached())
        if not front.ready:
            return False
        self._look_for_root(now_ms)
        holds = self._serving.holds
        self._note_root_serves(holds=holds)
        if front.next_deadline_ms <= now_ms:
            self._close(front.tick(now_ms))
        gathered = self._input_router.take_batch(front)
        if not holds:
            self._keep_waiting(gathered, now_ms)
        elif self._dispatcher.has_work(gathered):
            self._unserved.clear()
            self._close(self._dispatcher.handle(gathered, now_ms))
            for client in self._dispatcher.backlog.clients():
                # Its inputs may have come while there was no lease: then the front has not seen any of them.
                assert isinstance(client, FrontClient)
                self.front.awaiting.kept_waiting(client)
        self.tunnels.settle()
        self.tunnels.open_wanted(self._root)
        return self._dispatcher.ready if holds else front.active

    def _note_root_serves(self, *, holds: bool) -> None:
        """After many refusals by a root that did not serve yet, its tunnels are dialed seldom. When it begins to serve,
        it grants a lease, and they are dialed at once."""
        life = self._disk.replication.life
        serves = life.state is BrokerState.SERVING if life.took_over else holds
        if serves and not self._root_serves:
            self.front.root_serves()
        self._root_serves = serves

    def _is_attached(self) -> bool:
        """The current root knows the bindings of the private queues here, and the acks of the clients here."""
        leads = self.tunnels.leads_to_root
        return not self.front.unsettled and all(
            trunk.settled and leads(trunk.tunnel) for trunk in self.front.trunks.values()
        )

    def _keep_waiting(self, gathered: Batch, now_ms: int) -> None:
        """Without a lease no client is served: this broker's state may be out of date. Input from the root is still
        handled."""
        self._dispatcher.postpone(gathered)
        overdue = False
        for client in self._dispatcher.backlog.clients():
            since_ms = self._unserved.setdefault(client, now_ms)
            if now_ms - since_ms >= self._root_wait_ms and not client.failed:
                self.front.faults.close_client(client, no_root(self._root_wait_ms))
                overdue = True
        if overdue or self.front.active:
            self._close(self.front.handle((), now_ms))

    def _learn(self) -> None:
        replication = self._disk.replication
        if not self.front.ready:
            if not replication.life.took_over:
                self.feed.begin(self._disk.applier.applied_index)
        elif replication.life.took_over:
            self.feed.committed(self._disk.applier.commit_index)
        else:
            self.feed.applied(self._disk.applier.applied_index)

    @property
    def _root(self) -> str | None:
        return self._disk.replication.knowledge.root

    def _look_for_root(self, now_ms: int) -> None:
        self.front.now_ms = now_ms
        if self._root is None:
            self._rootless_ms = now_ms if self._rootless_ms is None else self._rootless_ms
        else:
            self._rootless_ms = None
            # A cluster that has just begun has no users yet.
            begun = self._broker.state.had_users
            self._caught_up = self._caught_up or (begun and self._disk.replication.in_step)

    def _close(self, outcome: BatchOutcome) -> None:
        for client, fault in outcome.closing:
            link = self._links.of_client.get(client)
            if link is not None:
                self._closing.add_first(link, for_client(link, fault))

    @property
    def next_deadline_ms(self) -> int:
        return min(self.front.next_deadline_ms, self.tunnels.next_deadline_ms)

    # Output.

    def take_writes(self, writes: Writes, to_root: Writes, controls: list[Control]) -> None:
        clients: list[Client] = []
        tunnels: list[Tunnel] = []
        for owner in self.front.take_dirty():
            if isinstance(owner, Tunnel):
                tunnels.append(owner)
            else:
                clients.append(owner)
        self._links.take_writes(clients, writes)
        to_root += self.tunnels.take_writes(tunnels)
        self.tunnels.regulate()
        controls += self.tunnels.take_controls()

    def close_all(self, reason: str, writes: Writes, controls: list[Control]) -> None:
        """To be called when this node ends, and the front with it."""
        writes += self.tunnels.close_all(reason)
        controls += [control for control in self.tunnels.take_controls() if isinstance(control, Close)]


def front_service(
    settings: NodeSettings,
    broker: Broker,
    disk: DiskLog | None,
    links: ClientLinks,
    peers: PeerLinks | None,
    random: Random,
    now_ms: int,
) -> FrontService | None:
    """The front service; None for a broker that redirects clients, or that is alone."""
    if settings.cluster.access != "proxy" or disk is None or peers is None:
        return None
    return FrontService(settings, broker, disk, links, peers, random, now_ms)
