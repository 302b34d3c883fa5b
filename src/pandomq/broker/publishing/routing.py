"""Finds the queues of a message through exchanges, their bindings and their alternates, and caches the route.

There is one Router per vhost. Exchanges and bindings change through it, so that it can withdraw outdated plans. It
never removes an exchange by itself: it returns auto-delete exchanges that lost their last binding to the caller, which
has to log it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pandomq.broker.exchanges.binding import Binding, Destination, DestinationKind
from pandomq.broker.exchanges.catalogue import predeclared
from pandomq.broker.exchanges.exchange import Exchange, QueueDestination
from pandomq.broker.publishing.route_plans import RoutePlans
from pandomq.kernel import Plan, Queue
from pandomq.limits import EXCHANGE_HOPS_MAX, ROUTE_PLANS_CACHED_MAX

_NO_HEADERS: Final[Mapping[str, object]] = {}


class Router:
    exchanges: dict[str, Exchange]
    """All exchanges by name. Other modules only read it: `add` and `remove` change it."""

    def __init__(
        self, find_queue: Callable[[str], QueueDestination | None], plans_max: int = ROUTE_PLANS_CACHED_MAX
    ) -> None:
        """Makes the predeclared exchanges; `find_queue` returns a queue by name, for the default exchange."""
        self.exchanges = {exchange.name: exchange for exchange in predeclared(find_queue)}
        self.leads_to: Callable[[QueueDestination], bool] | None = None
        """If set, destinations for which it returns False are ignored: set before the first message. A broker that sets
        it knows only a part of all bindings (see `certain`); exchanges that choose do so among these."""
        self.certain = True
        """Whether a broker that knows all bindings would have found the same ones of these, for the last route."""
        self._plans = RoutePlans(plans_max)
        self.binding_count = 0
        """The number without those from the default exchange."""
        self._to_queue: dict[str, dict[Binding, None]] = {}
        self._to_exchange: dict[str, dict[Binding, None]] = {}

    # State.

    def add(self, exchange: Exchange) -> None:
        """A new exchange. It may be the missing alternate of others."""
        assert exchange.name not in self.exchanges
        self.exchanges[exchange.name] = exchange
        self._plans.withdraw(exchange.name, None)

    def remove(self, exchange: Exchange) -> list[Exchange]:
        """Removes the exchange, with the bindings from it and to it.

        Returns the auto-delete exchanges that lost their last binding by that: the caller removes them as well.
        """
        assert self.exchanges[exchange.name] is exchange
        for binding in list(exchange.bindings()):
            self.unbind(binding)
        emptied = self._unbind_all(self._to_exchange.get(exchange.name, ()))
        del self.exchanges[exchange.name]
        self._plans.withdraw(exchange.name, None)
        return [source for source in emptied if source is not exchange]

    def bind(self, binding: Binding) -> bool:
        """False if it was there already. The handler calls `Exchange.check_binding` first."""
        source = self.exchanges[binding.source]
        if not source.bind(binding, counts=not (source.chooses and self._passes_over(binding))):
            return False
        self.binding_count += 1
        self._leading_to(binding.kind).setdefault(binding.destination.name, {})[binding] = None
        self._plans.withdraw(source.name, source.key_of(binding))
        return True

    def _passes_over(self, binding: Binding) -> bool:
        if self.leads_to is None or isinstance(binding.destination, Exchange):
            return False
        return not self.leads_to(binding.destination)  # type: ignore[arg-type]  # no exchange, so a queue

    def unbind(self, binding: Binding) -> bool:
        """False if it was not there. If the source is auto-delete and has no binding left, the caller removes it."""
        source = self.exchanges[binding.source]
        if not source.unbind(binding):
            return False
        self.binding_count -= 1
        leading = self._leading_to(binding.kind)
        bindings = leading[binding.destination.name]
        del bindings[binding]
        if not bindings:
            del leading[binding.destination.name]
        self._plans.withdraw(source.name, source.key_of(binding))
        return True

    def bindings_to(self, destination: Destination) -> list[Binding]:
        """The bindings without a queue's implicit one from the default exchange."""
        kind = DestinationKind.EXCHANGE if isinstance(destination, Exchange) else DestinationKind.QUEUE
        return list(self._leading_to(kind).get(destination.name, ()))

    def queue_declared(self, name: str) -> None:
        """`find_queue` finds it from now on."""
        self._plans.withdraw("", name)

    def queue_deleted(self, queue: QueueDestination) -> list[Exchange]:
        """`find_queue` no longer finds it; its bindings are removed. Returns auto-delete exchanges as `remove` does."""
        self._plans.withdraw("", queue.name)
        return self._unbind_all(self._to_queue.get(queue.name, ()))

    def changed(self, exchange: Exchange, routing_key: str | None) -> None:
        """The effect of the exchange on the key (None: on any) may have changed: plans that passed it are withdrawn."""
        self._plans.withdraw(exchange.name, routing_key)

    def clear(self) -> None:
        """The vhost is deleted."""
        self._plans.withdraw_all()
        self.exchanges.clear()
        self._to_queue.clear()
        self._to_exchange.clear()
        self.binding_count = 0

    # Routes.

    def plan(self, exchange: Exchange, routing_key: str, without: Queue | None = None) -> Plan | None:
        """The route of every message with this key alone, or None if something on that route uses more than the key.

        `without`: the outlet of the broker that the messages come from. A match of it counts as matched.
        """
        if not exchange.static:
            return None
        plan = self._plans.find(exchange.name, routing_key, without)
        if plan is not None:
            return plan
        queues: dict[QueueDestination, None] = {}
        # These names include alternates that do not exist: the plan depends on them, too.
        passed = self._walk(exchange, (routing_key,), _NO_HEADERS, queues)
        if not (self.certain and all(self.exchanges[name].static for name in passed if name in self.exchanges)):
            return None
        plan = Plan([queue.kernel for queue in self._chosen(queues)])
        self._plans.remember(plan, exchange.name, routing_key, (name for name in passed if name != exchange.name))
        return self._plans.find(exchange.name, routing_key, without)

    def route(
        self, exchange: Exchange, routing_keys: Sequence[str], headers: Mapping[str, object]
    ) -> list[QueueDestination]:
        """Each queue once. DelayedMessages may be among them: `delayed.enqueue` handles them.

        `headers` may be MessageHeaders(message), which decodes headers and properties only on use.
        """
        return self._chosen(self.destinations(exchange, routing_keys, headers))

    def destinations(
        self, exchange: Exchange, routing_keys: Sequence[str], headers: Mapping[str, object]
    ) -> list[QueueDestination]:
        """The same, whatever `leads_to` returns."""
        queues: dict[QueueDestination, None] = {}
        self._walk(exchange, routing_keys, headers, queues)
        return list(queues)

    def _chosen(self, queues: Iterable[QueueDestination]) -> list[QueueDestination]:
        return list(queues) if self.leads_to is None else list(filter(self.leads_to, queues))

    def _walk(
        self,
        start: Exchange,
        routing_keys: Sequence[str],
        headers: Mapping[str, object],
        queues: dict[QueueDestination, None],
    ) -> Iterable[str]:
        # Fills in the queues and returns the names of the exchanges involved. Each is visited once, the nearest first:
        # so cycles end, and the limit on hops does not depend on the order of bindings.
        passed = {start.name: None}
        here = [start]
        self.certain = True
        for _ in range(EXCHANGE_HOPS_MAX + 1):
            ahead: list[Exchange] = []
            for exchange in here:
                matched = False
                for key in routing_keys if exchange.keyed else routing_keys[:1]:
                    for destination in exchange.match(key, headers):
                        matched = True
                        if not isinstance(destination, Exchange):
                            queues[destination] = None  # type: ignore[index]  # no exchange, so a queue
                        elif destination.name not in passed:
                            passed[destination.name] = None
                            ahead.append(destination)
                alternate = exchange.alternate
                if self.leads_to is not None and (exchange.chooses or (alternate is not None and not matched)):
                    self.certain = False
                if not matched and alternate is not None and alternate not in passed:
                    passed[alternate] = None
                    if alternate in self.exchanges:
                        ahead.append(self.exchanges[alternate])
            if not ahead:
                break
            here = ahead
        return passed

    def _leading_to(self, kind: DestinationKind) -> dict[str, dict[Binding, None]]:
        return self._to_queue if kind is DestinationKind.QUEUE else self._to_exchange

    def _unbind_all(self, bindings: Iterable[Binding]) -> list[Exchange]:
        sources: dict[Exchange, None] = {}
        for binding in list(bindings):
            self.unbind(binding)
            sources[self.exchanges[binding.source]] = None
        return [source for source in sources if source.auto_delete and not source.binding_count]
