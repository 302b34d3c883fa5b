"""The shared parts of tests of takeovers: a root with a client, its end, and the state of the next root."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pandomq.broker.broker import Broker
from tests.unit.node.cluster_world import ClusterWorld, Loss

PERSISTENT = 2


class Cluster:
    """Three brokers. `channel` is one of a client of the root, in confirm mode."""

    def __init__(self, seed: int = 1, count: int = 3) -> None:
        self.world = ClusterWorld(count, seed=seed)
        self.channel = self.join()

    def join(self) -> Any:
        channel = self.world.client(self.root).channel()
        channel.rpc("confirm.select")
        return channel

    @property
    def root(self) -> str:
        return self.world.elect()

    @property
    def backups(self) -> list[str]:
        root = self.root
        return [name for name, machine in self.world.machines.items() if name != root and machine.node is not None]

    def declare(self, queue: str = "q", **arguments: Any) -> None:
        """A durable one; underscores in the names of arguments stand for hyphens."""
        table = {f"x-{name.replace('_', '-')}": value for name, value in arguments.items()}
        self.channel.rpc("queue.declare", queue=queue, durable=True, arguments=table)

    def publish(self, *bodies: bytes, queue: str = "q", **properties: Any) -> None:
        properties.setdefault("delivery_mode", PERSISTENT)
        for body in bodies:
            self.channel.publish_confirmed(body, routing_key=queue, **properties)

    def take_over(self, loss: Loss = Loss.NONE) -> None:
        """The root dies, and whoever is elected serves `channel` from now on."""
        old = self.root
        self.world.kill(old, loss)
        assert self.root != old
        self.channel = self.join()

    def come_back(self) -> None:
        """Those who died follow again, and have what the root has."""
        self.start_again()
        self.world.until(self.agree)

    def start_again(self) -> None:
        for name, machine in self.world.machines.items():
            if machine.node is None:
                self.world.start(name)

    def drain(self, queue: str = "q") -> list[bytes]:
        got: list[bytes] = self.channel.drain(queue)
        return got

    # The state of each broker.

    def brokers(self) -> list[Broker]:
        return [machine.node.broker for machine in self.world.machines.values() if machine.node is not None]

    def agree(self) -> bool:
        views = [_held(broker) for broker in self.brokers()]
        return all(view == views[0] for view in views)


def _held(broker: Broker) -> Mapping[str, object]:
    """Returns the state that must be equal on all: shared queues with their messages in the log, exchanges and
    bindings."""
    vhost = broker.state.vhosts.get("/")
    if vhost is None:
        return {}
    held: dict[str, object] = {}
    unacked = [
        row for client in broker.clients for channel in client.channels.values() for row in channel.kernel.unacked()
    ]
    for queue in vhost.queues.values():
        if queue.owner is None:
            rows = [*queue.kernel.snapshot(), *(row[1:] for row in unacked if row[0] is queue.kernel)]
            kept = sorted((row[0], row[5].body) for row in rows if row[5].kept and queue.durable)
            held[f"queue {queue.name}"] = (kept, dict(queue.arguments))
    for exchange in vhost.router.exchanges.values():
        shared = [binding for binding in exchange.bindings() if _is_shared(binding.destination)]
        held[f"exchange {exchange.name}"] = sorted((one.destination.name, one.routing_key) for one in shared)
    return held


def _is_shared(destination: Any) -> bool:
    return getattr(destination, "owner", None) is None
