"""Changes of what all brokers of a cluster share, as they are written to the log.

A command carries all that is random or depends on time, so that applying it gives the same state everywhere. Every
exchange, every queue that is not exclusive and the bindings between them change by commands only, and so does what
administrators set (see `administration`, which checks those). Arguments are kept as an encoded field table: that keeps
the wire types, which later declares are compared with. A password is never in a command, only its hash.
"""

from typing import Final, Literal, TypeAlias

import msgspec


class _Command(msgspec.Struct, frozen=True, array_like=True, tag_field="command"):
    pass


class _InVhost(_Command, frozen=True):
    vhost: str


class DeclareExchange(_InVhost, frozen=True, tag="exchange"):
    name: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: bytes
    waiting_queue_id: int
    """Of the hidden queue of an exchange that delays messages."""


class DeleteExchange(_InVhost, frozen=True, tag="no-exchange"):
    name: str


class DeclareQueue(_InVhost, frozen=True, tag="queue"):
    name: str
    queue_id: int
    durable: bool
    auto_delete: bool
    arguments: bytes
    user: str
    now_ms: int
    inner: bool = False
    """It serves the broker itself; no client knows of it, and its name is one apart from those of other queues."""


class DeleteQueue(_InVhost, frozen=True, tag="no-queue"):
    name: str
    inner: bool = False


class BindQueue(_InVhost, frozen=True, tag="bind"):
    source: str
    queue: str
    routing_key: str
    arguments: bytes


class UnbindQueue(_InVhost, frozen=True, tag="unbind"):
    source: str
    queue: str
    routing_key: str
    arguments: bytes


class BindExchange(_InVhost, frozen=True, tag="bind-exchange"):
    source: str
    destination: str
    routing_key: str
    arguments: bytes


class UnbindExchange(_InVhost, frozen=True, tag="unbind-exchange"):
    source: str
    destination: str
    routing_key: str
    arguments: bytes


TopologyCommand = (
    DeclareExchange
    | DeleteExchange
    | DeclareQueue
    | DeleteQueue
    | BindQueue
    | UnbindQueue
    | BindExchange
    | UnbindExchange
)


# What administrators set.


class PutUser(_Command, frozen=True, tag="user"):
    """A new user, or another password and other tags for one; its limits and permissions stay."""

    name: str
    password_hash: str
    """Empty: it cannot log in with a password."""
    hashing: str
    tags: tuple[str, ...]


class DeleteUser(_Command, frozen=True, tag="no-user"):
    """With its permissions."""

    name: str


class PutVhost(_InVhost, frozen=True, tag="vhost"):
    description: str = ""
    tags: tuple[str, ...] = ()


class PutTracing(_InVhost, frozen=True, tag="tracing"):
    """Of so many of its messages, as a part of all, the steps are written to a stream; of none: no longer."""

    sample: float = 0.0


class DeleteVhost(_InVhost, frozen=True, tag="no-vhost"):
    """With everything in it."""


class PutPermissions(_InVhost, frozen=True, tag="permissions"):
    """Patterns; an empty one matches nothing but the empty name."""

    user: str
    configure: str
    write: str
    read: str


class DeletePermissions(_InVhost, frozen=True, tag="no-permissions"):
    user: str


class PutTopicPermissions(_InVhost, frozen=True, tag="topic-permissions"):
    user: str
    exchange: str
    write: str
    read: str


class DeleteTopicPermissions(_InVhost, frozen=True, tag="no-topic-permissions"):
    user: str
    exchange: str = ""
    """Empty: those of all exchanges."""


class PutPolicy(_InVhost, frozen=True, tag="policy"):
    name: str
    pattern: str
    apply_to: str
    priority: int
    definition: bytes
    """JSON: an object."""
    operator: bool = False


class DeletePolicy(_InVhost, frozen=True, tag="no-policy"):
    name: str
    operator: bool = False


class PutLimits(_Command, frozen=True, tag="limits"):
    """Changes the limits that are named and leaves the others; None removes one, a negative number allows any."""

    scope: Literal["vhost", "user"]
    name: str
    values: dict[str, int | None]


class StartBroker(_Command, frozen=True, tag="start"):
    """A broker begins to serve. Whatever was delivered before this entry may be delivered again after it."""

    name: str


class StoreOffset(_InVhost, frozen=True, tag="stream-offset"):
    """A reader of a stream has come so far."""

    stream: str
    name: str
    offset: int


class NoteProducers(_Command, frozen=True, tag="producers"):
    """The entry holds what these had to say, up to these numbers."""

    now_ms: int
    last: list[tuple[int, int]]
    """Producer and number."""


class SequenceNotes(msgspec.Struct, frozen=True, array_like=True):
    """What is new of a producer that names itself, see `named_producers`."""

    vhost: str
    name: str
    owner: int
    accepted: list[int]
    """Ranges: first, last, first, last."""
    again: list[int]
    """Refused; they may come again."""
    in_part: list[int]
    """Refused by some queues, and taken by others."""


class NoteSequences(_Command, frozen=True, tag="sequences"):
    """The entry holds what these producers published under these numbers."""

    now_ms: int
    notes: list[SequenceNotes]
    forgotten: list[tuple[str, str]] = []
    """Vhost and name of those that are remembered no longer."""


class DecideBatch(_InVhost, frozen=True, tag="staged-batch"):
    """What is staged in these inner queues is published, in this order; see `staging`."""

    query: str
    batch: int
    attempts: list[str]
    """Of none: it was published before."""
    now_ms: int
    forgotten: list[tuple[str, str]] = []
    """Vhost and query of those that are remembered no longer."""


class FinishBatch(_InVhost, frozen=True, tag="staged-batch-done"):
    """All of it is."""

    query: str
    batch: int


# Leases of queues, see `leases`.


class _OfLease(_InVhost, frozen=True):
    queue: str
    name: str


class PutLease(_OfLease, frozen=True, tag="lease"):
    """A new one, whose stream begins at this offset, or another time-out for one."""

    first_offset: int
    timeout_ms: int


class LeaseMessages(_OfLease, frozen=True, tag="leased"):
    """The entry has moved these from the queue to the end of the lease's stream."""

    runs: list[tuple[int, ...]]
    """As `leases.lease.Run` has them; of older logs without terms."""


class ReleaseLeased(_OfLease, frozen=True, tag="released"):
    """Messages before this offset are done with."""

    offset: int


class ReturnLeased(_OfLease, frozen=True, tag="returned"):
    """Messages before this offset are no longer leased: these are back in the queue, others were dead."""

    offset: int
    messages: list[tuple[int, int, int, bytes, bytes, bytes]]
    """Sequence, deadline, delivery count; routing, header and body."""
    terms: list[int] = []
    """Of each; older logs have none."""


class EndLease(_OfLease, frozen=True, tag="lease-ends"):
    """What it has goes back from now on."""


class ForgetLease(_OfLease, frozen=True, tag="no-lease"):
    """It has nothing any more, or its queue is gone."""


LeaseCommand = PutLease | LeaseMessages | ReleaseLeased | ReturnLeased | EndLease | ForgetLease

AdministrativeCommand = (
    PutUser
    | DeleteUser
    | PutVhost
    | PutTracing
    | DeleteVhost
    | PutPermissions
    | DeletePermissions
    | PutTopicPermissions
    | DeleteTopicPermissions
    | PutPolicy
    | DeletePolicy
    | PutLimits
)

StagingCommand = DecideBatch | FinishBatch

MessageCommand: TypeAlias = NoteProducers | NoteSequences | StoreOffset | StagingCommand | LeaseCommand
"""What they change is no configuration: brokers without messages do not hear of it."""

Command = TopologyCommand | AdministrativeCommand | StartBroker | MessageCommand


def is_inner(command: Command) -> bool:
    """It is about what serves the broker itself: fronts know nothing of that."""
    return isinstance(command, StagingCommand) or (isinstance(command, DeclareQueue | DeleteQueue) and command.inner)


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Command)


def encode_command(command: Command) -> bytes:
    return _ENCODER.encode(command)


def begins(kind: type[Command]) -> bytes:
    """How each encoded command of this kind begins: its shape and its name."""
    count = len(kind.__struct_fields__) + 1
    assert count < 16, "msgpack's short form of an array"
    tag = kind.__struct_config__.tag
    return bytes([0x90 | count]) + _ENCODER.encode(tag)


def decode_command(encoded: bytes) -> Command:
    command: Command = _DECODER.decode(encoded)
    return command
