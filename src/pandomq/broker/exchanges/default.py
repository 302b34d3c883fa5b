"""The default exchange: every queue is bound to it under its name, and no other binding is possible."""

from collections.abc import Callable, Iterable, Mapping

from pandomq.broker.exchanges.binding import Binding, Destination
from pandomq.broker.exchanges.exchange import Exchange, ExchangeTraits, QueueDestination


class DefaultExchange(Exchange):
    """Finds queues when it routes; it holds no bindings."""

    type_name = "direct"

    def __init__(self, find_queue: Callable[[str], QueueDestination | None]) -> None:
        super().__init__("", ExchangeTraits(durable=True))
        self._find_queue = find_queue

    def match(self, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        queue = self._find_queue(routing_key)
        return () if queue is None else (queue,)

    def bind(self, binding: Binding, *, counts: bool = True) -> bool:
        raise AssertionError("handlers refuse bindings of the default exchange")

    def unbind(self, binding: Binding) -> bool:
        raise AssertionError("handlers refuse bindings of the default exchange")
