"""Transactions over queues and messages of all levels are whole or not there, whenever the root dies (R24, P5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import ClosedByBrokerError
from tests.support.frames import EndOfStreamError
from tests.unit.node.cluster_world import ClusterWorld, Loss
from tests.unit.node.takeover import Cluster

LEVELS = (("durable", 2), ("durable", 1), ("quorum", 1), ("quorum", 2))


def transacted(cluster: Cluster) -> Any:
    channel = cluster.world.client(cluster.root).channel()
    channel.rpc("tx.select")
    return channel


def prepared(cluster: Cluster) -> Any:
    """A transaction that is not committed: publishes of all levels, and the ack of a message."""
    cluster.declare("durable")
    cluster.declare("quorum", queue_type="quorum")
    cluster.declare("source")
    cluster.channel.rpc("queue.declare", queue="passing")
    cluster.publish(b"s", queue="source")
    channel = transacted(cluster)
    channel.rpc("queue.declare", queue="private", exclusive=True)
    got = channel.get("source", no_ack=False)
    for number, (queue, mode) in enumerate(LEVELS):
        channel.publish(b"%d" % number, routing_key=queue, delivery_mode=mode)
    channel.publish(b"x", routing_key="passing")
    channel.publish(b"y", routing_key="private")
    channel.send("basic.ack", delivery_tag=got.delivery_tag, multiple=False)
    return channel


def found(cluster: Cluster) -> dict[str, list[bytes]]:
    return {queue: cluster.drain(queue) for queue in ("durable", "quorum", "source")}


WHOLE = {"durable": [b"0", b"1"], "quorum": [b"2", b"3"], "source": []}
NOTHING = {"durable": [], "quorum": [], "source": [b"s"]}


@pytest.mark.proves("R24")
def test_a_committed_transaction_is_whole_on_the_next_root() -> None:
    cluster = Cluster()
    channel = prepared(cluster)
    assert cluster.channel.counts("durable") == cluster.channel.counts("quorum") == (0, 0)
    channel.rpc("tx.commit")
    assert channel.get("private").body == b"y"
    assert cluster.drain("passing") == [b"x"]
    cluster.take_over(Loss.ALL)
    assert found(cluster) == WHOLE


@pytest.mark.proves("R24")
def test_an_uncommitted_or_rolled_back_transaction_leaves_nothing() -> None:
    for rollback in (False, True):
        cluster = Cluster()
        channel = prepared(cluster)
        if rollback:
            channel.rpc("tx.rollback")
        cluster.take_over()
        assert found(cluster) == NOTHING


@pytest.mark.proves("R24")
@pytest.mark.parametrize("seed", range(16))
def test_a_root_that_dies_during_a_commit_sends_no_false_commit_ok(seed: int) -> None:
    cluster = Cluster(seed)
    channel = prepared(cluster)
    channel.send("tx.commit")
    cluster.world.run(seed // 2)
    is_answered = bool(channel.connection.socket.written)
    root = cluster.root
    cluster.world.kill(root, (Loss.NONE, Loss.SOME)[seed % 2])
    if not is_answered:
        with pytest.raises((ClosedByBrokerError, EndOfStreamError)):
            channel.expect("tx.commit-ok")
    cluster.channel = cluster.join()
    outcome = found(cluster)
    assert outcome == WHOLE if is_answered else outcome in (WHOLE, NOTHING)
    cluster.come_back()


@pytest.mark.proves("R24")
def test_a_root_that_is_cut_off_answers_with_an_error() -> None:
    cluster = Cluster()
    channel = prepared(cluster)
    old = cluster.root
    cluster.world.isolate(old)
    channel.send("tx.commit")
    with pytest.raises(ClosedByBrokerError, match="this broker is no longer the root"):
        channel.expect("tx.commit-ok")
    cluster.world.until(lambda: cluster.world.root not in (None, old))
    cluster.channel = cluster.join()
    assert found(cluster) == NOTHING
    cluster.world.mend()
    cluster.world.until(cluster.agree)


def test_members_that_come_and_go_do_not_matter() -> None:
    cluster = Cluster()
    channel = prepared(cluster)
    away = cluster.backups[0]
    cluster.world.kill(away)
    channel.rpc("tx.commit")
    cluster.come_back()
    cluster.take_over()
    assert found(cluster) == WHOLE


def test_without_enough_backups_nothing_is_committed() -> None:
    cluster = Cluster(count=2)
    channel = prepared(cluster)
    away = cluster.backups[0]
    cluster.world.kill(away)
    channel.send("tx.commit")
    cluster.world.run(1_000)
    assert not channel.connection.socket.written
    cluster.world.start(away)
    channel.expect("tx.commit-ok")
    assert found(cluster) == WHOLE


# One broker alone: the level of its most reliable part is the level of all.


def restarted(parts: str) -> list[bytes]:
    """Returns the messages of a transaction that survive a restart: p and t for persistent and transient publishes, a
    for an ack."""
    world = ClusterWorld(1)
    channel = world.client(world.elect()).channel()
    for queue in ("q", "source"):
        channel.rpc("queue.declare", queue=queue, durable=True)
    channel.rpc("tx.select")
    channel.publish(b"s", routing_key="source", delivery_mode=2)
    channel.publish(b"s", routing_key="source", delivery_mode=2)
    channel.rpc("tx.commit")
    for part in parts:
        if part == "a":
            got = channel.get("source", no_ack=False)
            assert got is not None
            channel.send("basic.ack", delivery_tag=got.delivery_tag, multiple=False)
        else:
            channel.publish(part.encode(), routing_key="q", delivery_mode=2 if part == "p" else 1)
    channel.rpc("tx.commit")
    for _ in range(2):
        world.kill("n1", Loss.ALL)
        world.start("n1")
    channel = world.client(world.elect()).channel()
    assert channel.counts("source")[0] == 2 - parts.count("a")
    left: list[bytes] = channel.drain("q")
    world.run(20)
    world.kill("n1", Loss.ALL)
    world.start("n1")
    # A consumed message is gone for good, persistent or not.
    assert world.client(world.elect()).channel().drain("q") == []
    return left


@pytest.mark.proves("R24")
def test_a_transaction_takes_its_highest_level_for_all_its_parts() -> None:
    assert restarted("tpt") == [b"t", b"p", b"t"]
    assert restarted("ta") == [b"t"]
    assert restarted("tt") == []
