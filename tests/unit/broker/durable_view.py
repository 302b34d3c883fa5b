"""The state that must be equal on every broker with the same log, whichever of them was the root."""

from typing import Any

from pandomq.broker.broker import Broker
from pandomq.sim.state.live_state import live_state


def durable_view(broker: Broker) -> dict[str, Any]:
    """The broker must have no clients: what they hold unacked is in no queue.

    A restart may give messages other terms, and takes queues with it that are not durable.
    """
    assert not broker.clients
    view = live_state(broker)
    del view["next queue"]
    view["messages"] = {
        number: [(sequence, *content) for sequence, _, _, *content in messages]
        for number, messages in view["messages"].items()
    }
    counts = {name: vhost.router.binding_count for name, vhost in broker.state.vhosts.items()}
    return {**view, "binding counts": counts}
