"""Frozen copies of a broker's state, for the HTTP API, metrics, and the command line.

Long lists come as an iterator over a snapshot of names taken at the first step, so that a caller may take it in slices
and let the broker work in between; objects deleted meanwhile are left out, and each copy is as of the moment it was
made. The views of queues, exchanges and bindings are the broker's own; this module has those that need the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

from msgspec import structs

from pandomq import __version__, kernel
from pandomq.broker import client_views, views
from pandomq.broker.administration import administration_views
from pandomq.broker.client_views import ConsumerView
from pandomq.broker.publishing.producer_views import ProducerViews
from pandomq.broker.views import BindingView, ExchangeView, QueueView
from pandomq.node.data.views import DataViews
from pandomq.node.log.log import LOW_ON_DISK
from pandomq.node.views.records import (
    BrokerCounters,
    ClusterView,
    LinkChannelView,
    LinkConsumerView,
    LinkView,
    ListenerView,
    MemberView,
    NodeView,
    PassesView,
    PeerLinkView,
    QueueSize,
    QueueUseView,
    SyncTimesView,
)

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.client import Client
    from pandomq.broker.queues.queue import Queue
    from pandomq.broker.vhost import Vhost
    from pandomq.node.alarms import MemoryAlarm
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.data.sessions import DataSessions
    from pandomq.node.log.log import Log
    from pandomq.node.peers.links import PeerLinks
    from pandomq.node.settings import NodeSettings


class Views:
    __slots__ = (
        "_alarm",
        "_broker",
        "_count_links",
        "_link_of",
        "_links",
        "_log",
        "_settings",
        "_started_ms",
        "cluster_id",
        "data",
        "listeners",
        "passes",
        "peer_links",
        "producers",
        "sync_times",
    )

    def __init__(
        self,
        settings: NodeSettings,
        broker: Broker,
        links: ClientLinks,
        peer_links: PeerLinks | None,
        log: Log,
        alarm: MemoryAlarm,
        data: DataSessions,
        cluster_id: str,
        now_ms: int,
    ) -> None:
        self._settings = settings
        self._broker = broker
        self._links: Mapping[ClientLink, None] = links.present
        self._link_of: Mapping[Client, ClientLink] = links.of_client
        self._count_links: Callable[[], int] = lambda: links.count
        self._log = log
        self.producers = ProducerViews(broker)
        self.data = DataViews(data)
        self._alarm = alarm
        self.cluster_id = cluster_id
        self._started_ms = now_ms
        self.listeners: list[ListenerView] = []
        """The runtime adds its listeners."""
        self.sync_times: Callable[[], SyncTimesView] = lambda: SyncTimesView(0, 0.0, 0.0)
        """The runtime sets it: how long syncs take."""
        self.passes: Callable[[], PassesView] = lambda: PassesView(0, 0.0, 0.0)
        self.peer_links: Callable[[], Sequence[PeerLinkView]] = tuple if peer_links is None else peer_links.view

    def inherit(self, older: Views) -> None:
        """To be called when this node replaces one that restarted."""
        self.listeners += older.listeners
        self.sync_times = older.sync_times
        self.passes = older.passes
        self._broker.staging.expansion.inherit(older._broker.staging.expansion)
        self._log.inherit(older._log)

    # The broker as a whole.

    def node(self) -> NodeView:
        return NodeView(
            name=self._settings.name,
            uptime_ms=max(0, self._broker.now_ms - self._started_ms),
            listeners=tuple(self.listeners),
            memory_alarm=self._alarm.raised,
            disk_alarm=self._log.holds_back == LOW_ON_DISK,
            held_messages=self._broker.engine.held_messages,
            held_bytes=self._broker.engine.held_bytes,
            memory_bytes_max=self._settings.memory_bytes_max,
            connections=sum(link.vouched is None for link in self._link_of.values()),
            connections_max=self._settings.connections_max,
            log_index=int(self._log.last_index),
            log_bytes=self._log.appended_bytes,
        )

    def counters(self) -> BrokerCounters:
        engine = self._broker.engine
        return BrokerCounters(
            engine.published, engine.unroutable, engine.delivered, engine.redelivered, engine.acked, engine.confirmed
        )

    def alarms(self) -> tuple[str, ...]:
        raised = {"memory": self._alarm.raised, "disk": self._log.holds_back == LOW_ON_DISK}
        return (*(name for name, holds in raised.items() if holds), *self._log.alarms)

    def cluster(self) -> ClusterView:
        """A single broker is a cluster of one."""
        address = next((f"{at.host}:{at.port}" for at in self.listeners if at.protocol == "amqp"), "")
        facts = self._log.cluster(self._settings.name, self._settings.cluster.advertise or address)
        return ClusterView(
            cluster=self.cluster_id,
            name=self._settings.name,
            role=facts.role,
            epoch=facts.epoch,
            term=facts.term,
            root=facts.root,
            members=tuple(self._with_own_load(member) for member in facts.members),
            alarms=self.alarms(),
            alarm_texts=facts.alarm_texts,
            elections=facts.elections,
            election_count=facts.election_count,
            links=tuple(self.peer_links()),
            kernel=kernel.KIND,
            version=__version__,
        )

    def _with_own_load(self, member: MemberView) -> MemberView:
        if member.name != self._settings.name:
            return member
        return structs.replace(member, connections=self._count_links())

    # Settings of administrators.

    def users(self) -> Iterator[administration_views.UserView]:
        return administration_views.users(self._broker)

    def user(self, name: str) -> administration_views.UserView | None:
        return self._broker.administration.user(name)

    def vhosts(self) -> Iterator[administration_views.VhostView]:
        return administration_views.vhosts(self._broker)

    def permissions(self) -> Iterator[administration_views.PermissionsView]:
        return administration_views.permissions(self._broker)

    def topic_permissions(self) -> Iterator[administration_views.TopicPermissionsView]:
        return administration_views.topic_permissions(self._broker)

    def policies(self, *, operator: bool) -> Iterator[administration_views.PolicyView]:
        return administration_views.policies(self._broker, operator=operator)

    # Vhosts and their objects.

    def vhost_names(self) -> list[str]:
        return list(self._broker.state.vhosts)

    def has_vhost(self, name: str) -> bool:
        return name in self._broker.state.vhosts

    def may_enter(self, user: str, vhost: str) -> bool:
        """Whether the user has any permissions there."""
        home = self._broker.state.vhosts.get(vhost)
        access = None if home is None else home.access.get(user)
        return access is not None and access.permissions is not None

    def queues(self, vhost: str | None = None) -> Iterator[QueueView]:
        for home in self._vhosts(vhost):
            for queue in home.listed_queues():
                if not queue.kernel.deleted:
                    yield views.queue_view(self._broker, queue)

    def queue_marks(self) -> Iterator[tuple[tuple[str, str], object]]:
        """Vhost and name of each queue, and a mark that is equal to its last one as long as its view is."""
        for home in self._vhosts(None):
            for queue in home.listed_queues():
                place = queue.kernel
                # The arguments of a declare never change, and another queue of that name is another object.
                yield (
                    (home.name, queue.name),
                    (
                        id(queue),
                        queue.policy,
                        queue.message_count,
                        queue.message_bytes,
                        place.unacked_count,
                        place.consumer_count,
                        place.published,
                        place.delivered,
                        place.redelivered,
                        place.acked,
                        place.dropped,
                        self._broker.leases.acked_count(queue),
                        *self._broker.leases.of_queue(queue),
                    ),
                )

    def queue_sizes(self) -> Iterator[QueueSize]:
        for home in self._vhosts(None):
            for queue in home.listed_queues():
                place = queue.kernel
                unacked = place.unacked_count + self._broker.leases.leased_count(queue)
                yield QueueSize(home.name, queue.message_count, queue.message_bytes, unacked, place.consumer_count)

    def exchange_counts(self) -> dict[str, int]:
        """The counts by vhost."""
        return {home.name: len(home.router.exchanges) for home in self._vhosts(None)}

    def queue(self, vhost: str, name: str) -> QueueView | None:
        queue = self._queue(vhost, name)
        return None if queue is None else views.queue_view(self._broker, queue)

    def queue_use(self, vhost: str, name: str) -> QueueUseView | None:
        queue = self._queue(vhost, name)
        if queue is None:
            return None
        consumers = queue.kernel.consumers()
        single = next((one for one in consumers if one.active), None) if queue.settings.single_active else None
        exclusive = queue.exclusive_consumer
        return QueueUseView(
            consumers=tuple(
                _consumer(self._link_of.get(one.channel.owner.client), client_views.consumer_view(one))
                for one in consumers
            ),
            exclusive_consumer_tag=None if exclusive is None else exclusive.tag.decode(),
            single_active_consumer_tag=None if single is None else single.tag.decode(),
        )

    def exchanges(self, vhost: str | None = None) -> Iterator[ExchangeView]:
        for home in self._vhosts(vhost):
            for exchange in list(home.router.exchanges.values()):
                yield views.exchange_view(home.name, exchange)

    def exchange(self, vhost: str, name: str) -> ExchangeView | None:
        home = self._broker.state.vhosts.get(vhost)
        exchange = None if home is None else home.router.exchanges.get(name)
        return None if exchange is None else views.exchange_view(vhost, exchange)

    def bindings(self, vhost: str | None = None) -> Iterator[BindingView]:
        """Each queue's own binding to the default exchange included."""
        for home in self._vhosts(vhost):
            for queue in home.listed_queues():
                yield default_binding(home.name, queue.name)
            for exchange in list(home.router.exchanges.values()):
                for binding in views.listed_bindings(exchange):
                    yield views.binding_view(home.name, binding)

    def bindings_from(self, vhost: str, source: str) -> Iterator[BindingView]:
        home = self._broker.state.vhosts.get(vhost)
        if home is None:
            return
        if not source:
            yield from (default_binding(vhost, queue.name) for queue in home.listed_queues())
        elif source in home.router.exchanges:
            for binding in views.listed_bindings(home.router.exchanges[source]):
                yield views.binding_view(vhost, binding)

    def bindings_to_queue(self, vhost: str, name: str) -> Iterator[BindingView]:
        """Without its own binding to the default exchange."""
        queue = self._queue(vhost, name)
        if queue is not None:
            for binding in queue.vhost.router.bindings_to(queue):
                yield views.binding_view(vhost, binding)

    def bindings_to_exchange(self, vhost: str, name: str) -> Iterator[BindingView]:
        home = self._broker.state.vhosts.get(vhost)
        if home is not None and name in home.router.exchanges:
            for binding in home.router.bindings_to(home.router.exchanges[name]):
                yield views.binding_view(vhost, binding)

    # Clients.

    def connections(self) -> Iterator[LinkView]:
        for link in self._named(None):
            if link.client is not None:
                yield _link_view(link, link.client)

    def find_link(self, name: str) -> ClientLink | None:
        """The open connection of that name. For the node: the result is a live object."""
        return next((link for link in self._named(None) if link.client is not None and link.name == name), None)

    def connection(self, name: str) -> LinkView | None:
        link = self.find_link(name)
        return None if link is None or link.client is None else _link_view(link, link.client)

    def client_sizes(self) -> Iterator[tuple[str, str, int]]:
        """Vhost, user and number of channels of each connection."""
        for client in [client for client, link in self._link_of.items() if self._is_shown(link)]:
            yield client.vhost.name, client.user, len(client.channels)

    def channels(self, connection: str | None = None) -> Iterator[LinkChannelView]:
        for link in self._named(connection):
            if link.client is not None:
                for channel in list(link.client.channels.values()):
                    yield LinkChannelView(link.name, link.peer, client_views.channel_view(channel))

    def consumers(self, connection: str | None = None) -> Iterator[LinkConsumerView]:
        for link in self._named(connection):
            if link.client is not None:
                for channel in list(link.client.channels.values()):
                    for consumer in list(channel.consumers.values()):
                        if not consumer.queue.deleted:
                            yield _consumer(link, client_views.consumer_view(consumer))

    # Internals.

    def _vhosts(self, name: str | None) -> list[Vhost]:
        vhosts = self._broker.state.vhosts
        if name is None:
            return list(vhosts.values())
        return [vhosts[name]] if name in vhosts else []

    def _queue(self, vhost: str, name: str) -> Queue | None:
        home = self._broker.state.vhosts.get(vhost)
        return None if home is None else home.queues.get(name)

    def _is_shown(self, link: ClientLink) -> bool:
        """A tunnel is listed as the connection for which it stands, unless that is one of this broker's own."""
        vouched = link.vouched
        return vouched is None or not (vouched.trunk or vouched.origin == self._settings.name)

    def _named(self, connection: str | None) -> Iterable[ClientLink]:
        if connection is None:
            return [link for link in self._links if self._is_shown(link)]
        link = self.find_link(connection)
        return () if link is None else (link,)


def default_binding(vhost: str, queue: str) -> BindingView:
    """The binding that every queue has by default."""
    properties_key = quote_plus(queue.encode("utf-8", "surrogateescape")).replace("~", "%7E")
    return BindingView(vhost, "", queue, "queue", queue, {}, properties_key)


def _consumer(link: ClientLink | None, view: ConsumerView) -> LinkConsumerView:
    if link is None or link.client is None:
        return LinkConsumerView("", ("", 0), "", view)
    return LinkConsumerView(link.name, link.peer, link.client.user, view)


def _link_view(link: ClientLink, client: Client) -> LinkView:
    agreed = link.connection.agreed
    return LinkView(
        name=link.name,
        peer=link.peer,
        local=link.local,
        user=client.user,
        vhost=client.vhost.name,
        state="blocked" if link.blocked else "flow" if link.reading_paused else "running",
        mechanism=link.mechanism,
        tls=link.tls,
        channels=len(client.channels),
        frame_max=agreed.frame_max,
        channel_max=agreed.channel_max,
        heartbeat_s=agreed.heartbeat_s,
        connected_ms=client.connected_ms,
        client_properties=client.properties,
        received_bytes=link.received_bytes,
        received_count=link.received_count,
        sent_bytes=link.sent_bytes,
        sent_count=link.sent_count,
        pending_bytes=client.session.pending_bytes,
    )
