"""A published message: the bytes a consumer gets, and the fields that were read out of them once."""

from pandomq.kernel.plain.fields import Traits, find_field, traits_of
from pandomq.limits import SHORT_STRING_BYTES_MAX


class Message:
    """Immutable except for `kept`, `holders` (the number of queues and windows that hold it), its producer, and the
    fields about its past."""

    __slots__ = (
        "body",
        "body_size",
        "expiration_ms",
        "header",
        "held_bytes",
        "holders",
        "kept",
        "number",
        "persistent",
        "priority",
        "producer",
        "routing",
        "special",
        "suspect",
        "traced_us",
    )

    routing: bytes
    header: bytes
    body: bytes
    body_size: int
    persistent: bool
    kept: bool
    priority: int
    expiration_ms: int
    special: int
    producer: int
    number: int
    suspect: bool
    traced_us: int
    """When it was published, if a trace has recorded it; else 0."""
    holders: int
    held_bytes: int
    """Memory that a holder keeps alive."""

    def __init__(self, routing: bytes, header: bytes, body: bytes) -> None:
        self.routing = routing
        self.header = header
        self.body = body
        self.body_size = len(body)
        self.persistent, self.priority, self.expiration_ms, self.special = traits_of(header)
        self.kept = self.persistent
        self.producer = self.number = 0
        self.suspect = False
        self.traced_us = 0
        self.holders = 0
        self.held_bytes = len(header) + len(body)

    @property
    def exchange(self) -> str:
        return self.routing[1 : 1 + self.routing[0]].decode("utf-8", "surrogateescape")

    @property
    def routing_key(self) -> str:
        return self.routing[2 + self.routing[0] :].decode("utf-8", "surrogateescape")

    def unkept_copy(self) -> "Message":
        copy = Message(self.routing, self.header, self.body)
        copy.producer, copy.number = self.producer, self.number
        copy.suspect, copy.traced_us = self.suspect, self.traced_us
        copy.kept = False
        return copy

    def find_header(self, name: bytes) -> bytes | None:
        return find_field(self.header, name)


def make_message(routing: bytes, header: bytes, body: bytes, body_size: int, traits: Traits) -> Message:
    """A message whose header was parsed before."""
    message = Message.__new__(Message)
    message.routing = routing
    message.header = header
    message.body = body
    message.body_size = body_size
    message.persistent, message.priority, message.expiration_ms, message.special = traits
    message.kept = message.persistent
    message.producer = message.number = 0
    message.suspect = False
    message.traced_us = 0
    message.holders = 0
    message.held_bytes = len(header) + len(body)
    return message


def routing_of(exchange: str, routing_key: str) -> bytes:
    names = [name.encode("utf-8", "surrogateescape") for name in (exchange, routing_key)]
    for name in names:
        if len(name) > SHORT_STRING_BYTES_MAX:
            raise ValueError(f"{len(name)} bytes, but a short string has at most {SHORT_STRING_BYTES_MAX}")
    return b"".join(bytes((len(name),)) + name for name in names)
