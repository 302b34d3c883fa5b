"""Secondaries of real processes: they join and leave under load, have the declared objects, and hold no message."""

from __future__ import annotations

from random import Random

import pytest

from pandomq.limits import MIB
from tests.integration.waiting import wait_until

from .cluster import PATIENCE_S, Cluster
from .scene import Scene, play
from .secondaries import Secondary, joined

DISK_BYTES_MAX = 16 * MIB
"""The size of the store of a secondary after a short life: a few segments and their spares."""
BODY = bytes(100_000)
COUNT = 300


def declare(cluster: Cluster, name: str) -> None:
    with cluster.connect() as connection:
        connection.channel().queue_declare(name, durable=True)


def come_and_go(scene: Scene) -> None:
    """One is killed, one ends in order, one outlives the root; all while other clients work."""
    cluster = scene.cluster
    with joined(cluster, "s1", "s2", "s3") as (first, second, third):
        scene.load.wait_for_progress()
        first.kill()
        first.wait_until_forgotten()
        scene.load.wait_for_progress()
        second.stop()
        second.wait_until_forgotten()
        for primary in (cluster.root, cluster.backups[0]):
            primary.kill()
            cluster.wait_for_root(other_than=primary)
            wait_until(lambda: len(third.linked_to) == 2, "its links to those who are left", PATIENCE_S)
            declare(cluster, f"without.{primary.name}")
            wait_until(lambda: third.has_queue(f"without.{primary.name}"), "the queue there", PATIENCE_S)  # noqa: B023
            primary.start()
            cluster.wait_until_whole()
            third.wait_until_in_step()
        first.start()
        first.wait_until_in_step()
        assert first.has_queue(f"without.{primary.name}")


@pytest.mark.proves("R3", "R6")
@pytest.mark.timeout(240)
def test_secondaries_join_and_leave_under_load(cluster: Cluster, chance: Random) -> None:
    play(come_and_go, cluster, chance)


@pytest.mark.proves("R3")
@pytest.mark.timeout(120)
def test_a_secondary_holds_the_configuration_and_no_message(cluster: Cluster) -> None:
    with joined(cluster, "s4") as (secondary,), cluster.connect() as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("of.messages", durable=True)
        for _ in range(COUNT):
            channel.basic_publish("", "of.messages", BODY)
        wait_until(lambda: secondary.has_queue("of.messages"), "the queue there", PATIENCE_S)
        shown = secondary.ask("queues/%2F/of.messages")
        assert shown is not None and shown.json()["messages"] == 0
        # The primaries store far more than that.
        assert secondary.size_bytes < DISK_BYTES_MAX < COUNT * len(BODY)
        channel.queue_delete("of.messages")
        wait_until(lambda: not secondary.has_queue("of.messages"), "the queue gone there, too", PATIENCE_S)


@pytest.mark.proves("R3")
@pytest.mark.timeout(120)
def test_a_secondary_lets_no_secondary_in(cluster: Cluster) -> None:
    with joined(cluster, "s5") as (secondary,):
        other = Secondary(cluster, "s6", join=[secondary.address])
        try:
            other.launch()
            other.wait_for_line("s5 is a secondary and connects to primaries only: n1 at ")
            assert secondary.linked_to == {"n1", "n2", "n3"}
            assert other.linked_to == set()
        finally:
            other.end()
