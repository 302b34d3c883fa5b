"""Changes of what all brokers of a cluster share, as they are written to the log.

A command carries all that is random or depends on time, so that applying it gives the same state everywhere. Every
exchange, every queue that is not exclusive and the bindings between them change by commands only. Arguments are kept
as an encoded field table: that keeps the wire types, which later declares are compared with.
"""

from typing import Final

import msgspec


class _Command(msgspec.Struct, frozen=True, array_like=True, tag_field="command"):
    vhost: str


class DeclareExchange(_Command, frozen=True, tag="exchange"):
    name: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: bytes
    waiting_queue_id: int
    """Of the hidden queue of an exchange that delays messages."""


class DeleteExchange(_Command, frozen=True, tag="no-exchange"):
    name: str


class DeclareQueue(_Command, frozen=True, tag="queue"):
    name: str
    queue_id: int
    durable: bool
    auto_delete: bool
    arguments: bytes
    user: str
    now_ms: int


class DeleteQueue(_Command, frozen=True, tag="no-queue"):
    name: str


class BindQueue(_Command, frozen=True, tag="bind"):
    source: str
    queue: str
    routing_key: str
    arguments: bytes


class UnbindQueue(_Command, frozen=True, tag="unbind"):
    source: str
    queue: str
    routing_key: str
    arguments: bytes


class BindExchange(_Command, frozen=True, tag="bind-exchange"):
    source: str
    destination: str
    routing_key: str
    arguments: bytes


class UnbindExchange(_Command, frozen=True, tag="unbind-exchange"):
    source: str
    destination: str
    routing_key: str
    arguments: bytes


Command = (
    DeclareExchange
    | DeleteExchange
    | DeclareQueue
    | DeleteQueue
    | BindQueue
    | UnbindQueue
    | BindExchange
    | UnbindExchange
)

_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Command)


def encode_command(command: Command) -> bytes:
    return _ENCODER.encode(command)


def decode_command(encoded: bytes) -> Command:
    command: Command = _DECODER.decode(encoded)
    return command
