"""Staged batches in a cluster: whenever the root dies, a batch is published once, whole and in order, or not at all."""

from __future__ import annotations

import pytest

from pandomq.broker.broker import Broker
from pandomq.broker.staging.names import StagingAttempt
from pandomq.broker.staging.staging import Chosen
from tests.unit.broker.staging_scene import frames
from tests.unit.node.cluster_world import ClusterWorld, Loss
from tests.unit.node.takeover import Cluster

PARTITIONS, PARTS = 3, 4
CHOSEN = [Chosen(partition, "a", PARTS) for partition in range(PARTITIONS)]
WANTED = [f"{partition} {part} {number}" for partition in range(PARTITIONS) for part in range(PARTS) for number in "01"]


class Paged(Cluster):
    """Where hardly anything stays in memory."""

    def __init__(self, seed: int) -> None:
        self.world = ClusterWorld(3, seed=seed, paging_bytes=4096)
        self.channel = self.join()


def broker_of(cluster: Cluster) -> Broker:
    return cluster.world.node(cluster.root).broker


def stage_all(cluster: Cluster, *, batch: int = 0, padding: int = 0) -> None:
    broker, answers = broker_of(cluster), list[bool]()
    vhost = broker.state.vhosts["/"]
    for partition in range(PARTITIONS):
        for part in range(PARTS):
            bodies = [f"{partition} {part} {number}" for number in "01"]
            octets = frames(*bodies) + frames("." * padding, key="nowhere")
            attempt = StagingAttempt(batch, partition, "a", "w")
            broker.staging.stage(
                vhost, vhost.access["guest"], attempt, part, octets, answers.append, cluster.world.now_ms
            )
    cluster.world.until(lambda: len(answers) == PARTITIONS * PARTS)


def commit(cluster: Cluster) -> list[bool]:
    """Grows when the answer comes."""
    broker, answers = broker_of(cluster), list[bool]()
    vhost = broker.state.vhosts["/"]
    broker.staging.commit(
        vhost,
        vhost.access["guest"],
        "w",
        0,
        CHOSEN,
        lambda: answers.append(True),
        lambda _: answers.append(False),
        cluster.world.now_ms,
    )
    return answers


@pytest.mark.proves("S2")
@pytest.mark.parametrize("seed", range(20))
def test_a_batch_is_published_once_although_the_root_dies_meanwhile(seed: int) -> None:
    cluster = Paged(seed) if seed % 2 else Cluster(seed)
    cluster.declare("q")
    stage_all(cluster, padding=3000)
    answers = commit(cluster)
    cluster.world.run(seed)
    said_so = bool(answers)
    cluster.take_over((Loss.NONE, Loss.ALL)[seed // 2 % 2])
    if not said_so:
        answers = commit(cluster)
        cluster.world.until(lambda: bool(answers))
    cluster.world.until(lambda: not broker_of(cluster).state.staged.open)
    assert cluster.drain("q") == [body.encode() for body in WANTED]
    cluster.come_back()
    for broker in cluster.brokers():
        assert broker.state.vhosts["/"].inner_queues == {}
        assert broker.state.staged.last_batch("/", "guest", "w") == 0


@pytest.mark.proves("S2")
def test_parts_staged_at_one_root_are_committed_at_the_next() -> None:
    cluster = Paged(1)
    cluster.declare("q")
    stage_all(cluster, padding=3000)
    cluster.take_over(Loss.ALL)
    assert cluster.drain("q") == []
    stage_all(cluster, padding=3000)
    answers = commit(cluster)
    cluster.world.until(lambda: bool(answers))
    assert cluster.drain("q") == [body.encode() for body in WANTED]
