"""A binding: from an exchange to a queue or another exchange, under a routing key and arguments.

Two bindings are the same if source, destination (kind and name), routing key and arguments are; the order in which the
arguments were given does not matter, their types do. What a binding means is decided by its source's type.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Protocol, TypeAlias


class DestinationKind(Enum):
    QUEUE = "queue"
    EXCHANGE = "exchange"


class Destination(Protocol):
    """What a binding leads to: an Exchange, or a queue (then it also is a `QueueDestination`)."""

    @property
    def name(self) -> str: ...


class Binding:
    """Frozen. `destination` is the living object, so that routing needs no look-up by name."""

    __slots__ = ("_hash", "_identity", "arguments", "destination", "kind", "routing_key", "source")

    source: str
    destination: Destination
    kind: DestinationKind
    routing_key: str
    arguments: Mapping[str, Any]

    @classmethod
    def to_queue(cls, source: str, queue: Destination, routing_key: str, arguments: Mapping[str, Any]) -> "Binding": ...

    @classmethod
    def to_exchange(
        cls, source: str, exchange: Destination, routing_key: str, arguments: Mapping[str, Any]
    ) -> "Binding": ...

    @property
    def properties_key(self) -> str:
        """As RabbitMQ's HTTP API names the binding among those between the same two ends."""
