"""The x-delayed-message exchange: routes as the type that x-delayed-type names; messages with an x-delay wait first.

While a message has to wait its only destination is `waiting`; when its time has come it is routed once more, with its
x-delay negated, to its other destinations.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from pandomq.broker.exchanges.binding import Binding, Destination
from pandomq.broker.exchanges.exchange import Exchange, ExchangeTraits
from pandomq.broker.publishing.delayed import delay_ms

DELAYED_TYPE: Final = "x-delayed-type"


class DelayedExchange(Exchange):
    type_name = "x-delayed-message"
    static = False

    def __init__(self, name: str, traits: ExchangeTraits, inner: Exchange) -> None:
        super().__init__(name, traits)
        self._inner = inner
        self.keyed = inner.keyed
        self.chooses = inner.chooses

    def check_binding(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        self._inner.check_binding(routing_key, arguments)

    def match(self, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        if self.waiting is not None and delay_ms(headers) > 0:
            return (self.waiting,)
        return self._inner.match(routing_key, headers)

    def _add(self, binding: Binding) -> None:
        self._inner.bind(binding)

    def _drop(self, binding: Binding) -> None:
        self._inner.unbind(binding)
