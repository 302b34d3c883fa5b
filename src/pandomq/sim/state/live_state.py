"""The state that must be equal on all brokers with the same log, read from their live tables.

This is a second definition beside `kept_state`, which reads the content of a snapshot: an error of the snapshots shows
here.
"""

from __future__ import annotations

from typing import Any

from pandomq.broker.broker import Broker
from pandomq.broker.vhost import Vhost


def live_state(broker: Broker) -> dict[str, Any]:
    """Returns users, vhosts and their content: exchanges, shared queues, the bindings between them, permissions,
    policies; the persistent messages in durable queues that are in memory, and the numbers of producers.

    Clients must hold no unacked messages, since those are in no queue.
    """
    state = broker.state
    return {
        "next queue": state.next_queue_id,
        "users": dict(state.users),
        "vhosts": {name: _vhost_view(vhost) for name, vhost in state.vhosts.items()},
        "messages": {
            number: [
                (sequence, term, deadline_ms, message.routing, message.header, message.body)
                for sequence, term, deadline_ms, _, _, message in owner.kernel.snapshot()
                if message.persistent and message.kept and owner.kernel.logged
            ]
            for number, (_, owner) in state.logged.items()
        },
        "stored offsets": {
            number: (dict(owner.stream.stored_offsets), owner.stream.offsets.users())
            for number, (_, owner) in state.logged.items()
            if owner.stream is not None
        },
        "producers": list(zip(state.named_producers.users(), state.named_producers.rows(), strict=True)),
        "staged": list(state.staged.commands()),
        "hosts": set(state.hosts),
    }


def find_difference(ours: Any, theirs: Any, path: str = "") -> str | None:
    """Describes the difference for a reader; None if there is none."""
    if ours == theirs:
        return None
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in {**ours, **theirs}:
            text = find_difference(ours.get(key), theirs.get(key), f"{path} {key}".strip())
            if text is not None:
                return text
    if isinstance(ours, set) and isinstance(theirs, set):
        return f"{path} has {sorted(ours - theirs, key=str)[:3]}, not {sorted(theirs - ours, key=str)[:3]}"
    return f"{path} is {ours}, not {theirs}"


def _vhost_view(vhost: Vhost) -> dict[str, Any]:
    exchanges = vhost.router.exchanges.values()
    shared = [queue for queue in vhost.queues.values() if queue.owner is None]
    private = {queue.name for queue in vhost.queues.values() if queue.owner is not None}
    return {
        "about": (vhost.description, vhost.tags, vhost.limits),
        "exchanges": {
            exchange.name: (
                exchange.type_name,
                exchange.durable,
                exchange.auto_delete,
                exchange.internal,
                dict(exchange.arguments),
                exchange.alternate,
            )
            for exchange in exchanges
        },
        "bindings": {
            (binding.source, binding.kind, binding.destination.name, binding.routing_key, binding.canonical_arguments)
            for exchange in exchanges
            for binding in exchange.bindings()
            if binding.destination.name not in private
        },
        "queues": {
            queue.name: (
                queue.kernel.queue_id,
                queue.durable,
                queue.auto_delete,
                dict(queue.arguments),
                queue.user,
                queue.settings,
                None if queue.policy is None else (queue.policy.policy_name, queue.policy.operator_name),
            )
            for queue in shared
        },
        "permissions": {
            access.user: (access.permissions, access.topics)
            for access in vhost.access.values()
            if access.permissions or access.topics
        },
        "policies": [
            (policy.name, policy.pattern, policy.apply_to, policy.priority, policy.definition, policy.operator)
            for policy in vhost.policies
        ],
    }
