"""The fanout exchange: every destination gets every message, whatever its key."""

from collections.abc import Iterable, Mapping

from pandomq.broker.exchanges.binding import Binding, Destination
from pandomq.broker.exchanges.exchange import DestinationCounts, Exchange, ExchangeTraits


class FanoutExchange(Exchange):
    type_name = "fanout"
    keyed = False

    def __init__(self, name: str, traits: ExchangeTraits) -> None:
        super().__init__(name, traits)
        self._destinations = DestinationCounts()

    def match(self, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        return self._destinations

    def _add(self, binding: Binding) -> None:
        self._destinations.add(binding.destination)

    def _drop(self, binding: Binding) -> None:
        self._destinations.drop(binding.destination)
