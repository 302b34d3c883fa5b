"""The commands that make a fresh state equal to another one: everything shared, nothing private."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from pandomq.broker.exchanges.binding import Binding
from pandomq.broker.exchanges.catalogue import predeclared
from pandomq.broker.log.commands import (
    BindExchange,
    BindQueue,
    Command,
    DeclareExchange,
    DeclareQueue,
    DeleteVhost,
    PutLimits,
    PutPermissions,
    PutPolicy,
    PutTopicPermissions,
    PutTracing,
    PutUser,
    PutVhost,
)
from pandomq.broker.queues.queue import Queue
from pandomq.fieldtable import encode_table

if TYPE_CHECKING:
    from pandomq.broker.exchanges.exchange import Exchange
    from pandomq.broker.state import ReplicatedState
    from pandomq.broker.vhost import Vhost

_PREDECLARED = frozenset(exchange.name for exchange in predeclared(lambda name: None))
_FIRST_VHOST = "/"


def commands_of(state: "ReplicatedState") -> Iterator[Command]:
    for user in state.users.values():
        yield PutUser(user.name, user.password_hash, user.hashing, user.tags)
        if user.limits:
            yield PutLimits("user", user.name, dict(user.limits))
    if _FIRST_VHOST not in state.vhosts:
        yield DeleteVhost(_FIRST_VHOST)
    for vhost in state.vhosts.values():
        yield from _administered(vhost)
        for exchange in vhost.router.exchanges.values():
            if exchange.name not in _PREDECLARED:
                yield _declare_exchange(vhost, exchange)
        for queue in (*vhost.queues.values(), *vhost.inner_queues.values()):
            if queue.owner is None:
                yield _declare_queue(queue)
        for exchange in vhost.router.exchanges.values():
            for binding in exchange.bindings():
                yield from _bind(vhost, binding)
    yield from state.staged.commands()


def _administered(vhost: "Vhost") -> Iterator[Command]:
    yield PutVhost(vhost.name, vhost.description, vhost.tags)
    if vhost.trace_sample:
        yield PutTracing(vhost.name, vhost.trace_sample)
    if vhost.limits:
        yield PutLimits("vhost", vhost.name, dict(vhost.limits))
    for access in vhost.access.values():
        if access.permissions is not None:
            yield PutPermissions(vhost.name, access.user, *access.permissions)
        for exchange, topic in access.topics.items():
            yield PutTopicPermissions(vhost.name, access.user, exchange, *topic)
    for policy in vhost.policies:
        definition = msgspec.json.encode(policy.definition)
        yield PutPolicy(
            vhost.name, policy.name, policy.pattern, policy.apply_to, policy.priority, definition, policy.operator
        )


def _declare_exchange(vhost: "Vhost", exchange: "Exchange") -> Command:
    return DeclareExchange(
        vhost.name,
        exchange.name,
        exchange.type_name,
        exchange.durable,
        exchange.auto_delete,
        exchange.internal,
        encode_table(dict(exchange.arguments)),
        0 if exchange.waiting is None else exchange.waiting.kernel.queue_id,
    )


def _declare_queue(queue: Queue) -> Command:
    return DeclareQueue(
        queue.vhost.name,
        queue.name,
        queue.kernel.queue_id,
        queue.durable,
        queue.auto_delete,
        encode_table(dict(queue.arguments)),
        queue.user,
        queue.used_ms,
        queue.inner,
        queue.honours_replicate,
    )


def _bind(vhost: "Vhost", binding: Binding) -> Iterator[Command]:
    target, arguments = binding.destination, encode_table(dict(binding.arguments))
    if not isinstance(target, Queue):
        yield BindExchange(vhost.name, binding.source, target.name, binding.routing_key, arguments)
    elif target.owner is None:
        yield BindQueue(vhost.name, binding.source, target.name, binding.routing_key, arguments)
