"""Computes the commands that turn one configuration into another: commands that undo, then commands that add.

Both configurations are given as the commands that build them from a fresh state (`state_commands`). A queue or exchange
that was deleted and declared again is a different one, although the name is the same.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pandomq.broker.log.commands import (
    BindExchange,
    BindQueue,
    Command,
    DeclareExchange,
    DeclareQueue,
    DeleteExchange,
    DeletePermissions,
    DeletePolicy,
    DeleteQueue,
    DeleteTopicPermissions,
    DeleteUser,
    DeleteVhost,
    PutLimits,
    PutPermissions,
    PutPolicy,
    PutTopicPermissions,
    PutTracing,
    PutUser,
    PutVhost,
    UnbindExchange,
    UnbindQueue,
)
from pandomq.broker.log.state_commands import commands_of

if TYPE_CHECKING:
    from pandomq.broker.state import ReplicatedState

_SETTINGS = PutUser | PutVhost | PutTracing | PutPermissions | PutTopicPermissions | PutPolicy | PutLimits
"""Commands that may be repeated, to change the value."""


def commands_to_undo(state: "ReplicatedState", wanted: Sequence[Command]) -> Iterator[Command]:
    """Each command is to be applied to the state as it is taken; the order leaves no reference to a missing object."""
    kept = {_identity(command) for command in wanted}
    for command in reversed(list(commands_of(state))):
        if _identity(command) not in kept:
            yield from _undo(command)


def commands_to_add(state: "ReplicatedState", wanted: Sequence[Command]) -> Iterator[Command]:
    """The commands to apply after those that undo."""
    present = {_identity(command) for command in commands_of(state)}
    for command in wanted:
        # The commands that undo have deleted such a vhost.
        if not isinstance(command, DeleteVhost) and (
            isinstance(command, _SETTINGS) or _identity(command) not in present
        ):
            yield command


def _identity(command: Command) -> tuple[object, ...]:
    match command:
        case DeclareQueue(vhost=vhost, name=name, queue_id=queue_id):
            return "queue", vhost, name, queue_id
        case PutUser(name=name):
            return "user", name
        case PutVhost(vhost=vhost):
            return "vhost", vhost
        case PutTracing(vhost=vhost):
            return "tracing", vhost
        case PutPermissions(vhost=vhost, user=user):
            return "permissions", vhost, user
        case PutTopicPermissions(vhost=vhost, user=user, exchange=exchange):
            return "topic", vhost, user, exchange
        case PutPolicy(vhost=vhost, name=name, operator=operator):
            return "policy", vhost, name, operator
        case PutLimits(scope=scope, name=name, values=values):
            return "limits", scope, name, tuple(sorted(values))
        case _:
            fields: Any = command.__struct_fields__
            return type(command), *(getattr(command, field) for field in fields)


def _undo(command: Command) -> Iterator[Command]:
    match command:
        case DeclareExchange(vhost=vhost, name=name):
            yield DeleteExchange(vhost, name)
        case DeclareQueue(vhost=vhost, name=name):
            yield DeleteQueue(vhost, name)
        case BindQueue():
            yield UnbindQueue(command.vhost, command.source, command.queue, command.routing_key, command.arguments)
        case BindExchange():
            yield UnbindExchange(
                command.vhost, command.source, command.destination, command.routing_key, command.arguments
            )
        case PutUser(name=name):
            yield DeleteUser(name)
        case PutVhost(vhost=vhost):
            yield DeleteVhost(vhost)
        case PutTracing(vhost=vhost):
            yield PutTracing(vhost)
        case PutPermissions(vhost=vhost, user=user):
            yield DeletePermissions(vhost, user)
        case PutTopicPermissions(vhost=vhost, user=user, exchange=exchange):
            yield DeleteTopicPermissions(vhost, user, exchange)
        case PutPolicy(vhost=vhost, name=name, operator=operator):
            yield DeletePolicy(vhost, name, operator)
        case PutLimits(scope=scope, name=name, values=values):
            yield PutLimits(scope, name, dict.fromkeys(values))
        case _:
            # There must be no such vhost; `wanted` determines whether it is created.
            assert isinstance(command, DeleteVhost), command
