"""What must be the same on every broker that has the same log."""

from typing import Any

from pandomq.broker.broker import Broker


def durable_view(broker: Broker) -> dict[str, Any]:
    """Exchanges, shared queues, the bindings between them, and the persistent messages in durable queues.

    The broker must have no clients: what they hold unacked is in no queue.
    """
    assert not broker.clients
    (vhost,) = broker.state.vhosts.values()
    exchanges = vhost.router.exchanges.values()
    return {
        "exchanges": {
            exchange.name: (
                exchange.type_name,
                exchange.durable,
                exchange.auto_delete,
                exchange.internal,
                dict(exchange.arguments),
            )
            for exchange in exchanges
        },
        "bindings": {
            (binding.source, binding.kind, binding.destination.name, binding.routing_key, binding.canonical_arguments)
            for exchange in exchanges
            for binding in exchange.bindings()
        },
        "queues": {
            queue.name: (queue.kernel.queue_id, queue.durable, queue.auto_delete, dict(queue.arguments), queue.user)
            for queue in vhost.queues.values()
        },
        "messages": {
            number: [
                (sequence, message.routing, message.header, message.body)
                for sequence, _, _, _, _, message in owner.kernel.snapshot()
                if message.persistent and owner.kernel.logged
            ]
            for number, (_, owner) in broker.state.logged.items()
        },
    }
