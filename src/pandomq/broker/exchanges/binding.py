"""A binding: from an exchange to a queue or another exchange, under a routing key and arguments.

Two bindings are the same if source, destination (kind and name), routing key and arguments are; the order in which the
arguments were given does not matter, their wire types do. The source's type decides what a binding means.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from enum import Enum
from hashlib import blake2b
from typing import Any, Protocol
from urllib.parse import quote_plus

import msgspec

from pandomq.fieldtable import encode_table


class DestinationKind(Enum):
    QUEUE = "queue"
    EXCHANGE = "exchange"


class Destination(Protocol):
    """The destination of a binding: an Exchange, or a queue (then it also is a `QueueDestination`)."""

    @property
    def name(self) -> str: ...


class Binding(msgspec.Struct, frozen=True, eq=False):
    """Made by `to_queue` and `to_exchange`. The destination is the living object: routing needs no look-up by name."""

    source: str
    kind: DestinationKind
    destination: Destination
    routing_key: str
    arguments: Mapping[str, Any]
    canonical_arguments: bytes

    @classmethod
    def to_queue(cls, source: str, queue: Destination, routing_key: str, arguments: Mapping[str, Any]) -> "Binding":
        return cls(source, DestinationKind.QUEUE, queue, routing_key, arguments, _canonical(arguments))

    @classmethod
    def to_exchange(
        cls, source: str, exchange: Destination, routing_key: str, arguments: Mapping[str, Any]
    ) -> "Binding":
        return cls(source, DestinationKind.EXCHANGE, exchange, routing_key, arguments, _canonical(arguments))

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Binding)
            and self.routing_key == other.routing_key
            and self.destination.name == other.destination.name
            and self.kind is other.kind
            and self.source == other.source
            and self.canonical_arguments == other.canonical_arguments
        )

    def __hash__(self) -> int:
        return hash((self.source, self.destination.name, self.routing_key, self.canonical_arguments))

    @property
    def properties_key(self) -> str:
        """The key by which RabbitMQ's HTTP API distinguishes the bindings between the same two ends.

        Only the digest of the arguments is our own; clients take it from a listing and give it back.
        """
        if not self.routing_key and not self.arguments:
            return "~"
        octets = self.routing_key.encode("utf-8", "surrogateescape")
        key = quote_plus(octets).replace("~", "%7E")
        if not self.arguments:
            return key
        digest = blake2b(self.canonical_arguments, digest_size=16).digest()
        return f"{key}~{urlsafe_b64encode(digest).decode().rstrip('=')}"


def _canonical(arguments: Mapping[str, Any]) -> bytes:
    return encode_table(dict(sorted(arguments.items()))) if arguments else b""
