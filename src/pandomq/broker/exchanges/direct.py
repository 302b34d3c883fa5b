"""The direct exchange: a binding's key is the routing key itself."""

from collections.abc import Iterable, Mapping

from pandomq.broker.exchanges.binding import Binding, Destination
from pandomq.broker.exchanges.exchange import DestinationCounts, Exchange, ExchangeTraits


class DirectExchange(Exchange):
    type_name = "direct"

    def __init__(self, name: str, traits: ExchangeTraits) -> None:
        super().__init__(name, traits)
        self._by_key: dict[str, DestinationCounts] = {}

    def match(self, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        return self._by_key.get(routing_key, ())

    def key_of(self, binding: Binding) -> str | None:
        return binding.routing_key

    def _add(self, binding: Binding) -> None:
        destinations = self._by_key.get(binding.routing_key)
        if destinations is None:
            destinations = self._by_key[binding.routing_key] = DestinationCounts()
        destinations.add(binding.destination)

    def _drop(self, binding: Binding) -> None:
        destinations = self._by_key[binding.routing_key]
        destinations.drop(binding.destination)
        if not destinations:
            del self._by_key[binding.routing_key]
