"""A vhost: queues and exchanges by name, and the plans of those who publish there."""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.queue import Queue
from pandomq.broker.routing import Router
from pandomq.errors import not_found

if TYPE_CHECKING:
    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.broker.limits import BrokerLimits


class Vhost:
    __slots__ = ("_limits", "_routes", "engine", "name", "orphans", "queues", "reply_queues", "router")

    def __init__(self, name: str, engine: kernel.Engine, limits: "BrokerLimits") -> None:
        self.name = name
        self.engine = engine
        self.queues: dict[str, Queue] = {}
        self.reply_queues: dict[str, Queue] = {}
        """Reachable through the default exchange only, and in no listing."""
        self.router = Router(self.find_destination, limits.route_plans_max)
        self.orphans: list[Exchange] = []
        """Auto-delete exchanges that lost their last binding: `removal` deletes them."""
        self._limits = limits
        self._routes: dict[str, kernel.Routes] = {}

    def routes_of(self, user: str) -> kernel.Routes:
        routes = self._routes.get(user)
        if routes is None:
            routes = self._routes[user] = kernel.Routes(self._limits.route_plans_max)
        return routes

    # Queues.

    def find_destination(self, name: str) -> Queue | None:
        """For the default exchange."""
        return self.queues.get(name) or self.reply_queues.get(name)

    def queue(self, name: str) -> Queue:
        """Raises ChannelFault (404)."""
        queue = self.queues.get(name)
        if queue is None:
            raise not_found(f"no queue '{name}' in vhost '{self.name}'")
        return queue

    def add_queue(self, queue: Queue) -> None:
        self.queues[queue.name] = queue
        self.router.queue_declared(queue.name)

    def add_reply_queue(self, queue: Queue) -> None:
        self.reply_queues[queue.name] = queue
        self.router.queue_declared(queue.name)

    def remove_queue(self, queue: Queue) -> None:
        """With its messages, consumers and bindings."""
        (self.queues if self.queues.get(queue.name) is queue else self.reply_queues).pop(queue.name)
        queue.kernel.delete()
        self.orphans += self.router.queue_deleted(queue)

    # Exchanges.

    def exchange(self, name: str) -> "Exchange":
        """Raises ChannelFault (404)."""
        exchange = self.router.exchanges.get(name)
        if exchange is None:
            raise not_found(f"no exchange '{name}' in vhost '{self.name}'")
        return exchange
