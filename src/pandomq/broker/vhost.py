"""A vhost: queues and exchanges by name, the policies they follow, and the users' rights."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.administration.permissions import ALL_RIGHTS, VhostAccess
from pandomq.broker.administration.policies import Policies, PolicyChange
from pandomq.broker.publishing.routing import Router
from pandomq.broker.queues.outlets import Outlet, Stub
from pandomq.broker.queues.queue import Queue
from pandomq.errors import not_found

if TYPE_CHECKING:
    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.broker.limits import BrokerLimits
    from pandomq.broker.streams.chunk_cache import ChunkCache
    from pandomq.broker.streams.stored_offsets import OffsetCounts


class Vhost:
    __slots__ = (
        "_access_of_brokers",
        "_route_plans_max",
        "access",
        "chunk_cache",
        "connection_count",
        "description",
        "engine",
        "inner_queues",
        "limits",
        "name",
        "offset_counts",
        "orphans",
        "outlets",
        "policies",
        "queues",
        "reply_queues",
        "router",
        "stored_offsets_max",
        "tags",
        "trace",
        "trace_sample",
    )

    def __init__(
        self,
        name: str,
        engine: kernel.Engine,
        limits: "BrokerLimits",
        chunk_cache: "ChunkCache",
        offset_counts: "OffsetCounts",
    ) -> None:
        self.name = name
        self.description = ""
        self.tags: tuple[str, ...] = ()
        self.limits: Mapping[str, int] = {}
        self.trace_sample = 0.0
        """The fraction of its messages that is to be traced."""
        self.trace: kernel.Trace | None = None
        """The collection of traced events, on a broker that traces."""
        self.engine = engine
        self.chunk_cache = chunk_cache
        """The store of the chunks of streams."""
        self.offset_counts = offset_counts
        self.queues: dict[str, Queue] = {}
        self.reply_queues: dict[str, Queue] = {}
        """Reachable through the default exchange only, and in no listing."""
        self.inner_queues: dict[str, Queue] = {}
        """The broker's own queues: clients do not find them by name, and no policy applies to them."""
        self.outlets: dict[str, Outlet] = {}
        """The outlets by the broker that they lead to; they are among the queues, too."""
        self.router = Router(self.find_destination, limits.route_plans_max)
        self.orphans: list[Exchange] = []
        """Auto-delete exchanges that lost their last binding: `removal` deletes them."""
        self.policies = Policies()
        self.access: dict[str, VhostAccess] = {}
        """By user, for the users that may enter."""
        self._access_of_brokers: VhostAccess | None = None
        self.connection_count = 0
        self._route_plans_max = limits.route_plans_max
        self.stored_offsets_max = limits.tables.stored_offsets_max

    def access_of(self, user: str) -> VhostAccess:
        """The user's access, made when it is missing; then it allows nothing."""
        access = self.access.get(user)
        if access is None:
            access = self.access[user] = VhostAccess(user, self.name, self._route_plans_max)
        return access

    def access_of_brokers(self) -> VhostAccess:
        """The access of the other brokers of the cluster, which may do everything; it is in no listing."""
        if self._access_of_brokers is None:
            self._access_of_brokers = VhostAccess("", self.name, self._route_plans_max)
            self._access_of_brokers.grant(ALL_RIGHTS)
        return self._access_of_brokers

    def revoke(self, user: str) -> None:
        """Revokes all rights of the user here."""
        access = self.access.pop(user, None)
        if access is not None:
            access.revoke()
            access.revoke_topic("")

    def policies_changed(self, change: PolicyChange) -> list[Queue]:
        """Queues and exchanges follow at once. Returns the queues whose settings have changed."""
        changed: list[Queue] = []
        for queue in self.queues.values():
            effect = self.policies.after(change, queue.policy, queue.matched_by)
            if effect is not queue.policy and queue.follow(effect):
                changed.append(queue)
        for exchange in self.router.exchanges.values():
            effect = self.policies.after(change, exchange.policy, exchange.matched_by)
            if effect is not exchange.policy and exchange.follow(effect):
                self.router.changed(exchange, None)
        return changed

    def follow_trace(self, trace: kernel.Trace | None) -> None:
        """From now on the trace collects its events."""
        self.trace = trace
        for queue in self.queues.values():
            queue.follow_trace(trace)

    # Queues.

    def find_destination(self, name: str) -> Queue | None:
        """The destination of the default exchange for this name."""
        queue = self.queues.get(name) or self.reply_queues.get(name)
        if isinstance(queue, Stub):
            return None if queue.outlet.kernel.deleted else queue.outlet
        return queue

    def outlet_to(self, broker: str | None) -> kernel.Queue | None:
        """The outlet of the broker; None if it has none here."""
        outlet = None if broker is None else self.outlets.get(broker)
        return None if outlet is None else outlet.kernel

    @property
    def queue_count(self) -> int:
        """The number of listed queues."""
        return len(self.queues) - len(self.outlets)

    def listed_queues(self) -> list[Queue]:
        """Queues that clients have declared for their own use."""
        queues = self.queues.values()
        return [queue for queue in queues if not isinstance(queue, Outlet)] if self.outlets else list(queues)

    def queue(self, name: str) -> Queue:
        """Raises ChannelFault (404)."""
        queue = self.queues.get(name)
        if queue is None:
            raise not_found(f"no queue '{name}' in vhost '{self.name}'")
        return queue

    def add_queue(self, queue: Queue) -> None:
        if queue.inner:
            self.inner_queues[queue.name] = queue
            return
        if self.policies:
            queue.follow(self.policies.of_queue(queue))
        self.queues[queue.name] = queue
        if self.trace is not None:
            queue.follow_trace(self.trace)
        self.router.queue_declared(queue.name)

    def add_reply_queue(self, queue: Queue) -> None:
        self.reply_queues[queue.name] = queue
        self.router.queue_declared(queue.name)

    def remove_queue(self, queue: Queue) -> None:
        """Removes it with its messages, consumers and bindings."""
        named = next(known for known in self._names() if known.get(queue.name) is queue)
        del named[queue.name]
        queue.kernel.delete()
        if queue.stream is not None:
            queue.stream.close()
        orphans = self.router.queue_deleted(queue)
        if isinstance(queue, Outlet):
            # The private queues behind it may exist, and are bound again by the next one.
            self._outlet_gone(queue)
        else:
            self.orphans += orphans

    def _names(self) -> tuple[dict[str, Queue], ...]:
        return self.queues, self.reply_queues, self.inner_queues

    def _outlet_gone(self, outlet: Outlet) -> None:
        if self.outlets.get(outlet.origin) is outlet:
            del self.outlets[outlet.origin]
        for queue in outlet.owner.private_queues if outlet.owner is not None else ():
            if isinstance(queue, Stub) and queue.outlet is outlet:
                self.router.queue_declared(queue.name)

    def close(self) -> None:
        """The vhost was deleted: code that still holds it finds it empty."""
        for named in self._names():
            for queue in named.values():
                queue.kernel.delete()
                if queue.stream is not None:
                    queue.stream.close()
            named.clear()
        self.outlets.clear()
        self.router.clear()
        self.orphans.clear()
        for user in list(self.access):
            self.revoke(user)

    # Exchanges.

    def add_exchange(self, exchange: "Exchange") -> None:
        if self.policies:
            exchange.follow(self.policies.of_exchange(exchange))
        self.router.add(exchange)

    def exchange(self, name: str) -> "Exchange":
        """Raises ChannelFault (404)."""
        exchange = self.router.exchanges.get(name)
        if exchange is None:
            raise not_found(f"no exchange '{name}' in vhost '{self.name}'")
        return exchange
