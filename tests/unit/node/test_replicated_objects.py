"""The replicated objects: by default, as requested, and of bindings (R17)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pandomq.broker.log.commands import (
    AdministrativeCommand,
    DeclareQueue,
    PutPolicy,
    decode_command,
    encode_command,
)
from pandomq.fieldtable import encode_table
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


def ready_counts(cluster: Cluster, queue: str) -> list[int]:
    """The messages that each broker holds, the root first."""
    cluster.world.run(50)
    root = cluster.world.node(cluster.root).broker
    others = [broker for broker in cluster.brokers() if broker is not root]
    return [broker.state.vhosts["/"].queues[queue].kernel.ready_count for broker in (root, *others)]


def shown_levels(cluster: Cluster, queue: str) -> tuple[str, str]:
    [view] = [view for view in cluster.world.node(cluster.root).views.queues() if view.name == queue]
    return view.level, view.transient_level


REPLICATE = ("x-replicate", "qpid.replicate")


@pytest.mark.proves("R17")
@pytest.mark.parametrize("name", REPLICATE)
@pytest.mark.parametrize("value", ["messages", "all"])
def test_a_durable_queue_is_replicated_with_its_messages_if_that_is_requested(name: str, value: str) -> None:
    cluster = Cluster()
    cluster.channel.rpc("queue.declare", queue="q", durable=True, arguments={name: value})
    cluster.publish(b"1")
    assert (shown_levels(cluster, "q"), ready_counts(cluster, "q")) == (
        ("reliable-persistent", "reliable-transient"),
        [1, 1, 1],
    )
    cluster.take_over()
    cluster.channel.rpc("queue.declare", queue="q", durable=True, arguments={name: value})
    assert cluster.drain() == [b"1"]


@pytest.mark.proves("R17")
@pytest.mark.parametrize("name", REPLICATE)
def test_with_configuration_a_takeover_leaves_an_empty_queue_with_its_bindings(name: str) -> None:
    cluster = Cluster()
    cluster.channel.rpc("exchange.declare", exchange="e", type="fanout", durable=True)
    cluster.channel.rpc("queue.declare", queue="q", durable=True, arguments={name: "configuration"})
    cluster.channel.bind("q", "e")
    cluster.publish(b"1")
    assert (shown_levels(cluster, "q"), ready_counts(cluster, "q")) == (("transient", "transient"), [1, 0, 0])
    cluster.take_over()
    cluster.channel.rpc("queue.declare", queue="q", durable=True, arguments={name: "configuration"})
    assert cluster.drain() == []
    assert bound(cluster, "e") == [{"q"}, {"q"}]
    cluster.publish(b"2")
    assert cluster.drain() == [b"2"]


@pytest.mark.proves("R17")
def test_with_none_a_takeover_deletes_the_queue_and_its_bindings() -> None:
    cluster = Cluster()
    cluster.channel.rpc("exchange.declare", exchange="e", type="fanout", durable=True)
    cluster.channel.rpc("queue.declare", queue="q", durable=True, arguments={"x-replicate": "none"})
    cluster.channel.bind("q", "e")
    cluster.publish(b"1")
    assert (shown_levels(cluster, "q"), ready_counts(cluster, "q")) == (("transient", "transient"), [1, 0, 0])
    cluster.take_over()
    assert (known(cluster), bound(cluster, "e")) == ([set(), set()], [set(), set()])


@pytest.mark.proves("R17")
def test_with_none_an_auto_delete_exchange_outlives_the_bindings_that_a_takeover_ends() -> None:
    cluster = Cluster()
    cluster.channel.rpc("exchange.declare", exchange="e", type="fanout", durable=True, auto_delete=True)
    cluster.channel.rpc("queue.declare", queue="q", durable=True, arguments={"x-replicate": "none"})
    cluster.channel.rpc("queue.declare", queue="other", durable=True)
    cluster.channel.bind("q", "e")
    cluster.take_over()
    # The deletion of an object that has no relation to the exchange does not delete it, either.
    cluster.channel.rpc("queue.delete", queue="other")
    assert (known(cluster), bound(cluster, "e")) == ([set(), set()], [set(), set()])


@pytest.mark.proves("R17")
@pytest.mark.parametrize("value", ["configuration", "none"])
def test_a_lone_broker_keeps_durable_queues_whatever_they_request(value: str) -> None:
    world = ClusterWorld(1)
    name = world.elect()
    channel = world.client(name).channel()
    channel.rpc("queue.declare", queue="q", durable=True, arguments={"x-replicate": value})
    [view] = world.node(name).views.queues()
    assert (view.level, view.transient_level) == ("persistent", "transient")


@pytest.mark.proves("R17")
@pytest.mark.parametrize("queue_type", ["quorum", "stream"])
@pytest.mark.parametrize("value", ["configuration", "none"])
def test_quorum_queues_and_streams_are_always_replicated(queue_type: str, value: str) -> None:
    world = ClusterWorld(3)
    channel = world.client(world.elect()).channel()
    with pytest.raises(ClosedByBrokerError, match="are always replicated"):
        channel.rpc(
            "queue.declare", queue="q", durable=True, arguments={"x-queue-type": queue_type, "x-replicate": value}
        )


def administer(cluster: Cluster, *commands: AdministrativeCommand) -> None:
    for command in commands:
        answers: list[Any] = []
        cluster.world.node(cluster.root).administer(command, answers.append)
        cluster.world.until(lambda answers=answers: bool(answers))  # type: ignore[misc]
        assert answers == [None]


def policy(value: str) -> PutPolicy:
    return PutPolicy("/", "p", "^q$", "queues", 0, b'{"replicate": "%s"}' % value.encode())


@pytest.mark.proves("R17")
def test_a_policy_applies_to_later_messages() -> None:
    cluster = Cluster()
    cluster.declare("q")
    cluster.publish(b"1")
    administer(cluster, policy("configuration"))
    cluster.publish(b"2")
    assert ready_counts(cluster, "q") == [2, 1, 1]
    administer(cluster, policy("messages"))
    cluster.publish(b"3")
    assert ready_counts(cluster, "q") == [3, 2, 2]
    # Each message leaves the log's copies if it is there.
    assert cluster.drain() == [b"1", b"2", b"3"]
    assert ready_counts(cluster, "q") == [0, 0, 0]
    cluster.take_over()
    assert cluster.drain() == []


@pytest.mark.proves("R17")
def test_a_message_for_two_queues_is_kept_where_it_is_replicated() -> None:
    cluster = Cluster()
    cluster.channel.rpc("exchange.declare", exchange="e", type="fanout", durable=True)
    cluster.declare("q")
    cluster.channel.rpc("queue.declare", queue="l", durable=True, arguments={"x-replicate": "configuration"})
    for name in ("q", "l"):
        cluster.channel.bind(name, "e")
    cluster.channel.publish_confirmed(b"1", exchange="e", delivery_mode=2)
    assert (ready_counts(cluster, "q"), ready_counts(cluster, "l")) == ([1, 1, 1], [1, 0, 0])
    cluster.take_over()
    assert (cluster.drain(), cluster.drain("l")) == ([b"1"], [])


@pytest.mark.proves("R17")
def test_a_transaction_is_whole_in_both_kinds_of_queues() -> None:
    cluster = Cluster()
    cluster.declare("q")
    cluster.channel.rpc("queue.declare", queue="l", durable=True, arguments={"x-replicate": "configuration"})
    channel = cluster.world.client(cluster.root).channel()
    channel.rpc("tx.select")
    for name in ("q", "l"):
        channel.publish(b"1", routing_key=name, delivery_mode=2)
    assert (ready_counts(cluster, "q"), ready_counts(cluster, "l")) == ([0, 0, 0], [0, 0, 0])
    channel.rpc("tx.commit")
    assert (ready_counts(cluster, "q"), ready_counts(cluster, "l")) == ([1, 1, 1], [1, 0, 0])
    assert (cluster.drain(), cluster.drain("l")) == ([b"1"], [b"1"])


@pytest.mark.proves("R17")
def test_a_message_that_a_transaction_delays_is_replicated_though_a_local_queue_has_it_at_once() -> None:
    cluster = Cluster()
    cluster.declare("q")
    cluster.channel.rpc("queue.declare", queue="l", durable=True, arguments={"x-replicate": "configuration"})
    delayed = {"x-delayed-type": "fanout"}
    cluster.channel.rpc("exchange.declare", exchange="d", type="x-delayed-message", durable=True, arguments=delayed)
    cluster.channel.rpc("exchange.declare", exchange="e", type="fanout", durable=True)
    cluster.channel.rpc("exchange.bind", destination="d", source="e")
    cluster.channel.bind("q", "d")
    cluster.channel.bind("l", "e")
    channel = cluster.world.client(cluster.root).channel()
    channel.rpc("tx.select")
    channel.publish(b"1", exchange="e", delivery_mode=2, headers={"x-delay": 200})
    channel.rpc("tx.commit")
    assert (ready_counts(cluster, "q"), ready_counts(cluster, "l")) == ([0, 0, 0], [1, 0, 0])
    cluster.world.run(500)
    assert ready_counts(cluster, "q") == [1, 1, 1]
    cluster.take_over()
    # The log has it that the message is not delayed any more.
    cluster.world.run(500)
    assert cluster.drain() == [b"1"]


@pytest.mark.proves("R17")
def test_a_queue_of_an_earlier_version_keeps_its_messages_replicated() -> None:
    cluster = Cluster()
    arguments = encode_table({"x-replicate": "none"})
    root = cluster.world.node(cluster.root).broker
    command = DeclareQueue("/", "q", root.state.next_queue_id, True, False, arguments, "guest", 0)
    # The command of an earlier version does not have the last field.
    rows = msgspec.msgpack.decode(encode_command(command))
    assert decode_command(msgspec.msgpack.encode(rows[:-1])) == command
    root.issue(command)
    cluster.publish(b"1")
    assert shown_levels(cluster, "q") == ("reliable-persistent", "reliable-transient")
    cluster.take_over()
    assert cluster.drain() == [b"1"]


def test_a_queue_that_is_not_durable_may_declare_its_level_too() -> None:
    cluster = Cluster()
    for value in ("none", "configuration"):
        cluster.channel.rpc("queue.declare", queue=value, arguments={"x-replicate": value})
    views = list(cluster.world.node(cluster.root).views.queues())
    assert {view.level for view in views} == {"transient"}


@pytest.mark.proves("R17")
@pytest.mark.parametrize("value", ["none", "configuration", "messages"])
def test_a_queue_that_is_not_durable_has_no_choice(value: str) -> None:
    cluster = Cluster()
    cluster.channel.rpc("queue.declare", queue="argument", arguments={"x-replicate": value})
    cluster.channel.rpc("queue.declare", queue="q")
    administer(cluster, policy(value))
    cluster.take_over()
    assert known(cluster) == [{"argument", "q"}, {"argument", "q"}]


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
