"""The effects of administrators' commands, on every broker alike. `administration` has checked them."""

from typing import TYPE_CHECKING, assert_never

import msgspec

from pandomq.broker.administration.passwords import work_of
from pandomq.broker.administration.permissions import Permissions, TopicPermissions
from pandomq.broker.administration.policies import Policy
from pandomq.broker.administration.users import User, changed_limits
from pandomq.broker.log.commands import (
    AdministrativeCommand,
    DeletePermissions,
    DeletePolicy,
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
)

if TYPE_CHECKING:
    from pandomq.broker.state import ReplicatedState


def apply_administrative(state: "ReplicatedState", command: AdministrativeCommand) -> None:
    match command:
        case PutUser():
            _put_user(state, command)
        case DeleteUser():
            del state.users[command.name]
            for vhost in state.vhosts.values():
                vhost.revoke(command.name)
        case PutVhost():
            vhost = state.vhosts.get(command.vhost) or state.make_vhost(command.vhost)
            vhost.description = command.description
            vhost.tags = command.tags
        case PutTracing():
            state.vhosts[command.vhost].trace_sample = command.sample
        case DeleteVhost():
            state.delete_vhost(command.vhost)
        case PutPermissions():
            permissions = Permissions(command.configure, command.write, command.read)
            state.vhosts[command.vhost].access_of(command.user).grant(permissions)
        case DeletePermissions():
            state.vhosts[command.vhost].access_of(command.user).revoke()
        case PutTopicPermissions():
            topic = TopicPermissions(command.write, command.read)
            state.vhosts[command.vhost].access_of(command.user).grant_topic(command.exchange, topic)
        case DeleteTopicPermissions():
            state.vhosts[command.vhost].access_of(command.user).revoke_topic(command.exchange)
        case PutPolicy() | DeletePolicy():
            _change_policies(state, command)
        case PutLimits():
            _put_limits(state, command)
        case _:
            assert_never(command)


def _put_user(state: "ReplicatedState", command: PutUser) -> None:
    known = state.users.get(command.name)
    limits = {} if known is None else known.limits
    state.users[command.name] = User(command.name, command.password_hash, command.hashing, command.tags, limits)
    state.had_users = True
    state.password_work_max = max(state.password_work_max, work_of(command.password_hash, command.hashing))


def _put_limits(state: "ReplicatedState", command: PutLimits) -> None:
    if command.scope == "user":
        user = state.users[command.name]
        limits = changed_limits(user.limits, command.values)
        state.users[command.name] = msgspec.structs.replace(user, limits=limits)
    else:
        vhost = state.vhosts[command.name]
        vhost.limits = changed_limits(vhost.limits, command.values)


def _change_policies(state: "ReplicatedState", command: PutPolicy | DeletePolicy) -> None:
    vhost = state.vhosts[command.vhost]
    if isinstance(command, PutPolicy):
        definition = msgspec.json.decode(command.definition)
        change = vhost.policies.put(
            Policy(command.name, command.pattern, command.apply_to, command.priority, definition, command.operator)
        )
    else:
        change = vhost.policies.remove(command.name, command.operator)
    state.changed_queues += vhost.policies_changed(change)
