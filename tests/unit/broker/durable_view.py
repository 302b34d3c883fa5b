"""What must be the same on every broker that has the same log."""

from typing import Any

from pandomq.broker.broker import Broker
from pandomq.broker.vhost import Vhost


def durable_view(broker: Broker) -> dict[str, Any]:
    """Users, vhosts and what is in them: exchanges, shared queues, the bindings between them, permissions, policies;
    the persistent messages in durable queues, and what producers have numbered.

    The broker must have no clients: what they hold unacked is in no queue.
    """
    assert not broker.clients
    state = broker.state
    return {
        "users": dict(state.users),
        "vhosts": {name: _vhost_view(vhost) for name, vhost in state.vhosts.items()},
        "messages": {
            number: [
                (sequence, message.routing, message.header, message.body)
                for sequence, _, _, _, _, message in owner.kernel.snapshot()
                if message.persistent and owner.kernel.logged
            ]
            for number, (_, owner) in state.logged.items()
        },
        "producers": state.named_producers.rows(),
        "staged": list(state.staged.commands()),
    }


def _vhost_view(vhost: Vhost) -> dict[str, Any]:
    exchanges = vhost.router.exchanges.values()
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
        },
        "binding count": vhost.router.binding_count,
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
            for queue in vhost.queues.values()
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
