"""The x-consistent-hash exchange: one destination for each hashed value, in proportion to weights.

The hashed value is the routing key, or the header or property that the argument hash-header or hash-property names. A
binding's key is its weight. If several bindings have the same destination the oldest counts, as in RabbitMQ.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pandomq.broker.exchanges.binding import Binding, Destination
from pandomq.broker.exchanges.exchange import Exchange, ExchangeTraits
from pandomq.broker.exchanges.hash_ring import HashRing, hash_value
from pandomq.broker.exchanges.message_headers import MessageHeaders
from pandomq.broker.field_text import name_of, plain, term, type_name
from pandomq.errors import precondition_failed
from pandomq.fieldtable import OctetString, encode_table

HASH_HEADER: Final = "hash-header"
HASH_PROPERTY: Final = "hash-property"
_PROPERTIES: Final = ("correlation_id", "message_id", "timestamp")
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)


class ConsistentHashExchange(Exchange):
    type_name = "x-consistent-hash"
    keyed = False
    chooses = True

    def __init__(self, name: str, traits: ExchangeTraits) -> None:
        super().__init__(name, traits)
        self._header = name_of(self.arguments[HASH_HEADER]) if HASH_HEADER in self.arguments else None
        self._property: str | None = self.arguments.get(HASH_PROPERTY)
        self.static = self._header is None and self._property is None
        self._ring: HashRing[Destination] = HashRing()
        self._by_destination: dict[Destination, dict[Binding, None]] = {}

    @classmethod
    def check_arguments(cls, arguments: Mapping[str, Any]) -> None:
        for name in (HASH_HEADER, HASH_PROPERTY):
            if name in arguments and not isinstance(arguments[name], str | OctetString):
                raise precondition_failed(f"invalid type '{type_name(arguments[name])}' for arg '{name}'")
        if HASH_PROPERTY not in arguments:
            return
        if HASH_HEADER in arguments:
            raise precondition_failed("hash-header and hash-property are mutually exclusive")
        if arguments[HASH_PROPERTY] not in _PROPERTIES:
            raise precondition_failed(f"Unsupported property: {plain(arguments[HASH_PROPERTY])}")

    def check_binding(self, routing_key: str, arguments: Mapping[str, Any]) -> None:
        if not _INTEGER.fullmatch(routing_key):
            raise precondition_failed(f"The binding key must be an integer: {term(routing_key)}")
        if int(routing_key) < 1:
            raise precondition_failed("The binding key must be greater than 0")

    def match(self, routing_key: str, headers: Mapping[str, object]) -> Iterable[Destination]:
        owner = self._ring.find(hash_value(self._hashed(routing_key, headers)))
        return () if owner is None else (owner,)

    def _hashed(self, routing_key: str, headers: Mapping[str, object]) -> bytes:
        value: object = routing_key
        if self._header is not None:
            value = headers.get(self._header)
        elif self._property is not None:
            value = headers.message_property(self._property) if isinstance(headers, MessageHeaders) else None
        if isinstance(value, str):
            return value.encode("utf-8", "surrogateescape")
        # Messages without the header or property all go to the same destination.
        return b"" if value is None else encode_table({"": value})

    def _add(self, binding: Binding) -> None:
        bindings = self._by_destination.setdefault(binding.destination, {})
        bindings[binding] = None
        if len(bindings) == 1:
            self._place(binding)

    def _drop(self, binding: Binding) -> None:
        bindings = self._by_destination[binding.destination]
        was_oldest = next(iter(bindings)) is binding
        del bindings[binding]
        if was_oldest:
            self._ring.remove(binding.destination)
            if bindings:
                self._place(next(iter(bindings)))
        if not bindings:
            del self._by_destination[binding.destination]

    def _place(self, binding: Binding) -> None:
        identity = f"{binding.kind.value}:{binding.destination.name}".encode("utf-8", "surrogateescape")
        self._ring.add(binding.destination, identity, int(binding.routing_key))
