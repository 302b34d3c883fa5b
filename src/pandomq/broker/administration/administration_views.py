"""Frozen copies of administrators' settings, for the HTTP API and other readers."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from pandomq.broker.administration.policies import Policy
    from pandomq.broker.administration.users import User
    from pandomq.broker.broker import Broker
    from pandomq.broker.vhost import Vhost


class UserView(msgspec.Struct, frozen=True):
    name: str
    password_hash: str
    hashing: str
    tags: tuple[str, ...]
    limits: Mapping[str, int]


class VhostView(msgspec.Struct, frozen=True):
    name: str
    description: str
    tags: tuple[str, ...]
    limits: Mapping[str, int]
    connections: int
    queues: int
    trace_sample: float = 0.0
    """The fraction of its messages that is traced."""


class PermissionsView(msgspec.Struct, frozen=True):
    user: str
    vhost: str
    configure: str
    write: str
    read: str


class TopicPermissionsView(msgspec.Struct, frozen=True):
    user: str
    vhost: str
    exchange: str
    write: str
    read: str


class PolicyView(msgspec.Struct, frozen=True):
    vhost: str
    name: str
    pattern: str
    apply_to: str
    priority: int
    definition: Mapping[str, Any]


def users(broker: "Broker") -> Iterator[UserView]:
    return map(user_view, list(broker.state.users.values()))


def user_view(user: "User") -> UserView:
    return UserView(user.name, user.password_hash, user.hashing, user.tags, dict(user.limits))


def vhosts(broker: "Broker") -> Iterator[VhostView]:
    return map(vhost_view, list(broker.state.vhosts.values()))


def vhost_view(vhost: "Vhost") -> VhostView:
    return VhostView(
        vhost.name,
        vhost.description,
        vhost.tags,
        dict(vhost.limits),
        vhost.connection_count,
        vhost.queue_count,
        vhost.trace_sample,
    )


def permissions(broker: "Broker") -> Iterator[PermissionsView]:
    for vhost in list(broker.state.vhosts.values()):
        for access in list(vhost.access.values()):
            if access.permissions is not None:
                yield PermissionsView(access.user, vhost.name, *access.permissions)


def topic_permissions(broker: "Broker") -> Iterator[TopicPermissionsView]:
    for vhost in list(broker.state.vhosts.values()):
        for access in list(vhost.access.values()):
            for exchange, topic in list(access.topics.items()):
                yield TopicPermissionsView(access.user, vhost.name, exchange, *topic)


def policies(broker: "Broker", *, operator: bool) -> Iterator[PolicyView]:
    for vhost in list(broker.state.vhosts.values()):
        for policy in list(vhost.policies):
            if policy.operator is operator:
                yield policy_view(vhost.name, policy)


def policy_view(vhost: str, policy: "Policy") -> PolicyView:
    return PolicyView(vhost, policy.name, policy.pattern, policy.apply_to, policy.priority, dict(policy.definition))
