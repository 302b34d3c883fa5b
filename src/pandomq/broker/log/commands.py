"""Changes of the state that all brokers of a cluster share, as they are written to the log.

A command carries all that is random or depends on time, so that applying it gives the same state everywhere. Every
exchange, every queue that is not exclusive and the bindings between them change by commands only, and so do
administrators' settings (see `administration`, which checks those). Arguments are kept as an encoded field table: that
keeps the wire types, which later declares are compared with. A password is never in a command, only its hash.
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
    """The id of the hidden queue of an exchange that delays messages."""


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
    """Whether the queue serves the broker itself; no client knows it, and its name is separate from those of other
    queues."""
    honours_replicate: bool = False
    """False: a broker declared the queue that replicated all messages of durable queues, whatever `x-replicate` is."""


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


# Settings of administrators.


class PutUser(_Command, frozen=True, tag="user"):
    """Makes a user, or changes password and tags of one; its limits and permissions stay."""

    name: str
    password_hash: str
    """Empty: the user cannot log in with a password."""
    hashing: str
    tags: tuple[str, ...]


class DeleteUser(_Command, frozen=True, tag="no-user"):
    """Deletes the user with its permissions."""

    name: str


class PutVhost(_InVhost, frozen=True, tag="vhost"):
    description: str = ""
    tags: tuple[str, ...] = ()


class PutTracing(_InVhost, frozen=True, tag="tracing"):
    """The steps of this fraction of its messages are written to a stream; 0 ends tracing."""

    sample: float = 0.0


class DeleteVhost(_InVhost, frozen=True, tag="no-vhost"):
    """Deletes the vhost with everything in it."""


class PutPermissions(_InVhost, frozen=True, tag="permissions"):
    """Patterns; an empty one matches only the empty name."""

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
    """Empty: the permissions of all exchanges."""


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
    """A broker begins to serve. Messages that were delivered before this entry may be delivered again after it."""

    name: str


class StoreOffset(_InVhost, frozen=True, tag="stream-offset"):
    """A reader of a stream stores its offset."""

    stream: str
    name: str
    offset: int
    user: str = ""
    """The user that owns the name; empty in logs of version 0.1.0, which do not have it."""


class NoteProducers(_Command, frozen=True, tag="producers"):
    """The entry holds publishes or commits of these producers, up to these numbers."""

    now_ms: int
    last: list[tuple[int, int]]
    """Producer and number."""


class SequenceNotes(msgspec.Struct, frozen=True, array_like=True):
    """New facts about a producer that names itself, see `named_producers`."""

    vhost: str
    name: str
    owner: int
    accepted: list[int]
    """Ranges: first, last, first, last."""
    again: list[int]
    """Refused numbers; they may come again."""
    in_part: list[int]
    """Numbers that some queues refused and others took."""
    user: str = ""
    """The user that owns the name; empty in logs of version 0.1.0, which do not have it."""


class NoteSequences(_Command, frozen=True, tag="sequences"):
    """The entry holds the publishes of these producers under these numbers."""

    now_ms: int
    notes: list[SequenceNotes]
    """The notes in order; several of one producer if several connections took it over."""
    forgotten: list[tuple[str, str]] = []
    """In logs of version 0.1.0: vhost and name of forgotten producers."""
    forgotten_of: list[tuple[str, str, str]] = []
    """Forgotten producers: vhost, user and name."""


class DecideBatch(_InVhost, frozen=True, tag="staged-batch"):
    """The staged messages of these inner queues are published, in this order; see `staging`."""

    query: str
    batch: int
    attempts: list[str]
    """Empty: the batch was published before."""
    now_ms: int
    forgotten: list[tuple[str, str]] = []
    """In earlier logs, where a query belonged to the vhost: vhost and name of forgotten queries."""
    user: str = ""
    """The user that owns the query; empty in logs of version 0.1.0, which do not have it."""
    forgotten_of: list[tuple[str, str, str]] = []
    """Forgotten queries: vhost, user and name."""


class NoteHosts(_Command, frozen=True, tag="hosts"):
    """Brokers that may get serving leases from now on, and brokers that may not, see `node.front.host_records`."""

    added: list[str]
    removed: list[str]


class FinishBatch(_InVhost, frozen=True, tag="staged-batch-done"):
    """The batch is published completely."""

    query: str
    batch: int
    user: str = ""
    """As in the decision; earlier logs do not have it."""


# Leases of queues, see `leases`.


class _OfLease(_InVhost, frozen=True):
    queue: str
    name: str


class PutLease(_OfLease, frozen=True, tag="lease"):
    """Makes a lease, whose stream begins at this offset, or changes the time-out of one."""

    first_offset: int
    timeout_ms: int


class LeaseMessages(_OfLease, frozen=True, tag="leased"):
    """The entry has moved these messages from the queue to the end of the lease's stream."""

    runs: list[tuple[int, ...]]
    """As in `leases.lease.Run`; older logs have no terms."""


class ReleaseLeased(_OfLease, frozen=True, tag="released"):
    """Messages before this offset are released."""

    offset: int


class ReturnLeased(_OfLease, frozen=True, tag="returned"):
    """Messages before this offset are no longer leased: these are back in the queue, others became dead letters."""

    offset: int
    messages: list[tuple[int, int, int, bytes, bytes, bytes]]
    """Sequence, deadline, delivery count; routing, header and body."""
    terms: list[int] = []
    """The term of each; older logs have none."""


class EndLease(_OfLease, frozen=True, tag="lease-ends"):
    """The lease's messages go back from now on."""


class ForgetLease(_OfLease, frozen=True, tag="no-lease"):
    """The lease has no messages any more, or its queue is deleted."""


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

MessageCommand: TypeAlias = NoteProducers | NoteSequences | NoteHosts | StoreOffset | StagingCommand | LeaseCommand
"""Their effects are no configuration: brokers without messages do not get them."""

Command = TopologyCommand | AdministrativeCommand | StartBroker | MessageCommand


def is_inner(command: Command) -> bool:
    """The command is about an object of the broker itself: fronts do not know those."""
    return isinstance(command, StagingCommand) or (isinstance(command, DeclareQueue | DeleteQueue) and command.inner)


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(Command)


def encode_command(command: Command) -> bytes:
    return _ENCODER.encode(command)


def begins(kind: type[Command]) -> tuple[bytes, ...]:
    """The possible first bytes of an encoded command of this kind: its shape and its name. In older versions it has
    fewer fields."""
    most = len(kind.__struct_fields__) + 1
    assert most < 16, "msgpack's short form of an array"
    tag = _ENCODER.encode(kind.__struct_config__.tag)
    return tuple(bytes([0x90 | count]) + tag for count in range(most - len(kind.__struct_defaults__), most + 1))


def decode_command(encoded: bytes) -> Command:
    command: Command = _DECODER.decode(encoded)
    return command
