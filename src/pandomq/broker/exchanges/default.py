"""The default exchange: every queue is bound to it under its name, and nothing else can be."""

from collections.abc import Callable, Iterable, Mapping

from pandomq.broker.binding import Binding, Destination
from pandomq.broker.exchanges.exchange import Exchange, QueueDestination, Traits


class DefaultExchange(Exchange):
    """Looks queues up when it routes; it holds no bindings."""

    type_name = "direct"

    def __init__(self, find_queue: Callable[[str], QueueDestination | None]) -> None:
        super().__init__("", Traits(durable=True))
        self._find_queue = find_queue

    def match(self, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        queue = self._find_queue(routing_key)
        return () if queue is None else (queue,)

    def bind(self, binding: Binding, *, counts: bool = True) -> bool:
        raise AssertionError("handlers refuse bindings of the default exchange")

    def unbind(self, binding: Binding) -> bool:
        raise AssertionError("handlers refuse bindings of the default exchange")
