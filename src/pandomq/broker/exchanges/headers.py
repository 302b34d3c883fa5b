"""The headers exchange: a binding's arguments name the headers that a message must have.

x-match determines whether all of them are required or any; arguments that begin with x- count only with all-with-x and
any-with-x. A void argument requires only the presence of the header. Values compare as in RabbitMQ 4: the width of
numbers does not matter, but no integer equals a float or a bool; strings compare by their octets.

Patterns are found through an index by (header, value), so those that share nothing with a message cost nothing.
"""

from collections.abc import Hashable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final

from pandomq.broker.exchanges.binding import Binding, Destination
from pandomq.broker.exchanges.exchange import Exchange, ExchangeTraits
from pandomq.broker.field_text import term, type_name
from pandomq.errors import precondition_failed
from pandomq.fieldtable import OctetString, encode_table

X_MATCH: Final = "x-match"
_MODES: Final = ("all", "any", "all-with-x", "any-with-x")

_Fact = tuple[str, Hashable]
"""A header's name and its value in comparable form, or _PRESENT."""

_PRESENT: Final = object()


class _Pattern:
    __slots__ = ("destination", "facts", "indexed", "wants_all")

    def __init__(self, binding: Binding) -> None:
        mode = binding.arguments.get(X_MATCH, "all")
        with_x = mode.endswith("-with-x")
        self.destination = binding.destination
        self.wants_all = mode.startswith("all")
        self.facts: tuple[_Fact, ...] = tuple(
            (name, _PRESENT if value is None else _comparable(value))
            for name, value in binding.arguments.items()
            if name != X_MATCH and (with_x or not name.startswith("x-"))
        )
        self.indexed: tuple[_Fact, ...] = ()

    def holds(self, values: Mapping[str, Hashable]) -> bool:
        """For a pattern that requires all."""
        for name, wanted in self.facts:
            if name not in values or (wanted is not _PRESENT and values[name] != wanted):
                return False
        return True


class HeadersExchange(Exchange):
    type_name = "headers"
    static = False
    keyed = False

    def __init__(self, name: str, traits: ExchangeTraits) -> None:
        super().__init__(name, traits)
        self._patterns: dict[Binding, _Pattern] = {}
        self._by_fact: dict[_Fact, dict[_Pattern, None]] = {}
        self._unconditional: dict[_Pattern, None] = {}

    def check_binding(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        if X_MATCH not in arguments:
            return
        mode = arguments[X_MATCH]
        if not isinstance(mode, str | OctetString):
            raise precondition_failed(
                f"Invalid x-match field type {type_name(mode)} (value {term(mode)}); expected longstr"
            )
        if mode not in _MODES:
            raise precondition_failed(
                f"Invalid x-match field value {term(mode)}; expected all, any, all-with-x, or any-with-x"
            )

    def match(self, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        found = [pattern.destination for pattern in self._unconditional]
        values = {name: _comparable(value) for name, value in headers.items()}
        for name, value in values.items():
            for fact in ((name, value), (name, _PRESENT)):
                for pattern in self._by_fact.get(fact, ()):
                    if not pattern.wants_all or pattern.holds(values):
                        found.append(pattern.destination)
        return found

    def _add(self, binding: Binding) -> None:
        pattern = self._patterns[binding] = _Pattern(binding)
        if not pattern.wants_all:
            pattern.indexed = pattern.facts
        elif pattern.facts:
            # One fact is enough to find a pattern that requires all; the rarest so far causes the fewest false
            # candidates.
            pattern.indexed = (min(pattern.facts, key=lambda fact: len(self._by_fact.get(fact, ()))),)
        else:
            self._unconditional[pattern] = None
        for fact in pattern.indexed:
            self._by_fact.setdefault(fact, {})[pattern] = None

    def _drop(self, binding: Binding) -> None:
        pattern = self._patterns.pop(binding)
        self._unconditional.pop(pattern, None)
        for fact in pattern.indexed:
            patterns = self._by_fact[fact]
            del patterns[pattern]
            if not patterns:
                del self._by_fact[fact]


def _comparable(value: Any) -> Hashable:
    # The keys are equal exactly if RabbitMQ takes the values for equal. Python's own equality would mix up 1, 1.0 and
    # true.
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return (bool, value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return (float, float(value))
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return bytes(value)
    if isinstance(value, list | dict | Decimal):
        return (type(value), encode_table({"": value}))
    assert value is None, f"no field value: {type(value)}"
    return (None,)
