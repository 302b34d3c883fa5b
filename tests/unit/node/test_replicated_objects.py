"""What is replicated: by default, as asked for, and of bindings (R17)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import ClosedByBrokerError
from tests.unit.node.cluster_world import ClusterWorld
from tests.unit.node.takeover import Cluster


def known(cluster: Cluster) -> list[set[str]]:
    """The queues that each broker knows, the root first."""
    cluster.world.run(50)
    root = cluster.world.node(cluster.root).broker
    others = [broker for broker in cluster.brokers() if broker is not root]
    return [set(broker.state.vhosts["/"].queues) for broker in (root, *others)]


def bound(cluster: Cluster, exchange: str) -> list[set[str]]:
    cluster.world.run(50)
    root = cluster.world.node(cluster.root).broker
    others = [broker for broker in cluster.brokers() if broker is not root]
    exchanges = [broker.state.vhosts["/"].router.exchanges[exchange] for broker in (root, *others)]
    return [{binding.destination.name for binding in one.bindings()} for one in exchanges]


@pytest.mark.proves("R17")
def test_by_default_durability_decides() -> None:
    cluster = Cluster()
    cluster.declare("durable")
    cluster.channel.rpc("queue.declare", queue="passing")
    cluster.channel.rpc("queue.declare", queue="private", exclusive=True)
    for name in ("durable", "passing", "private"):
        cluster.publish(b"1", queue=name)
    assert known(cluster) == [{"durable", "passing", "private"}, {"durable", "passing"}, {"durable", "passing"}]
    backup = cluster.world.node(cluster.backups[0]).broker.state.vhosts["/"].queues
    assert {name: queue.kernel.ready_count for name, queue in backup.items()} == {"durable": 1, "passing": 0}


@pytest.mark.proves("R17")
@pytest.mark.parametrize("name", ["x-replicate", "qpid.replicate"])
@pytest.mark.parametrize("value", ["none", "configuration", "messages", "all"])
def test_a_durable_queue_may_ask_for_less_than_it_is_given(name: str, value: str) -> None:
    cluster = Cluster()
    cluster.channel.rpc("queue.declare", queue="q", durable=True, arguments={name: value})
    cluster.publish(b"1")
    [view] = cluster.world.node(cluster.root).views.queues()
    assert (view.level, view.arguments) == ("reliable-persistent", {name: value})
    cluster.take_over()
    # The argument is a part of what was declared.
    cluster.channel.rpc("queue.declare", queue="q", durable=True, arguments={name: value})
    assert cluster.drain() == [b"1"]


def test_a_queue_that_is_not_durable_may_say_so_too() -> None:
    cluster = Cluster()
    for value in ("none", "configuration"):
        cluster.channel.rpc("queue.declare", queue=value, arguments={"x-replicate": value})
    views = list(cluster.world.node(cluster.root).views.queues())
    assert {view.level for view in views} == {"transient"}


@pytest.mark.proves("R17")
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("method", "options"),
    [("queue.declare", {"queue": "o"}), ("exchange.declare", {"exchange": "o", "type": "fanout"})],
)
@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"x-replicate": "some"}, "invalid arg 'x-replicate' for .*: invalid_replicate"),
        ({"qpid.replicate": "ALL"}, "invalid arg 'qpid.replicate' for .*: invalid_replicate"),
        ({"x-replicate": "none", "qpid.replicate": "all"}, "contradicts 'qpid.replicate'"),
    ],
)
def test_other_values_are_refused(
    count: int, method: str, options: dict[str, Any], arguments: dict[str, str], text: str
) -> None:
    world = ClusterWorld(count)
    channel = world.client(world.elect()).channel()
    with pytest.raises(ClosedByBrokerError, match=text):
        channel.rpc(method, durable=True, arguments=arguments, **options)


@pytest.mark.proves("R17")
def test_a_binding_is_replicated_if_both_its_ends_are() -> None:
    cluster = Cluster()
    cluster.channel.rpc("exchange.declare", exchange="e", type="fanout", durable=True)
    cluster.channel.rpc("exchange.declare", exchange="f", type="fanout", durable=True)
    cluster.declare("durable")
    cluster.channel.rpc("queue.declare", queue="passing")
    cluster.channel.rpc("queue.declare", queue="private", exclusive=True)
    for name in ("durable", "passing", "private"):
        cluster.channel.bind(name, "e")
    cluster.channel.rpc("exchange.bind", destination="f", source="e", routing_key="")
    shared = {"durable", "passing", "f"}
    assert bound(cluster, "e") == [shared | {"private"}, shared, shared]
    cluster.take_over()
    assert bound(cluster, "e") == [shared, shared]
