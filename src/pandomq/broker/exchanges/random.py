"""The x-random exchange: one of the bindings, by chance, gets the message, whatever the keys."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pandomq.broker.exchanges.binding import Binding, Destination
from pandomq.broker.exchanges.exchange import Exchange, ExchangeTraits

if TYPE_CHECKING:
    from random import Random


class RandomExchange(Exchange):
    type_name = "x-random"
    static = False
    chooses = True
    keyed = False

    def __init__(self, name: str, traits: ExchangeTraits, random: "Random") -> None:
        super().__init__(name, traits)
        self._random = random
        self._choices: list[Binding] = []
        self._places: dict[Binding, int] = {}

    def match(self, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        if not self._choices:
            return ()
        # This is much faster than choice(), and its bias, below 2^-53 times the number of bindings, cannot be observed.
        return (self._choices[int(self._random.random() * len(self._choices))].destination,)

    def _add(self, binding: Binding) -> None:
        self._places[binding] = len(self._choices)
        self._choices.append(binding)

    def _drop(self, binding: Binding) -> None:
        # The last one takes the free place, so that nothing has to move up.
        place = self._places.pop(binding)
        last = self._choices.pop()
        if last is not binding:
            self._choices[place] = last
            self._places[last] = place
