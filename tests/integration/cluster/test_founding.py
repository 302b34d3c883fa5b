"""Three new brokers with the same primaries found a cluster by themselves; without all of them nothing is founded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pika
import pika.exceptions
import pytest

from tests.integration.waiting import wait_until

from .cluster import Cluster, running
from .disks import wipe


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[Cluster]:
    """No broker runs yet."""
    cluster = Cluster(tmp_path / "founding")
    try:
        yield cluster
    finally:
        cluster.end()


def refusal(cluster: Cluster, name: str) -> str:
    with pytest.raises(pika.exceptions.AMQPConnectionError) as caught:
        pika.BlockingConnection(cluster[name].parameters())
    return str(caught.value) + repr(caught.value)


@pytest.mark.proves("R21")
def test_three_new_brokers_found_a_cluster_and_one_that_lost_its_store_learns(tmp_path: Path) -> None:
    with running(Cluster(tmp_path / "founding")) as cluster:
        ids = {broker.status["cluster"] for broker in cluster}
        assert len(ids) == 1
        lost = cluster.backups[0]
        lost.kill()
        wipe(lost.data)
        mark = lost.mark()
        lost.start()
        # Until then the root may not have noticed the loss.
        lost.wait_for_line("joins cluster", mark)
        # It restarts its state when it has joined.
        wait_until(lambda: lost.status.get("cluster") in ids)
        cluster.wait_until_whole()


@pytest.mark.proves("R21")
def test_two_of_three_wait_and_name_the_missing_broker(brokers: Cluster) -> None:
    brokers["n1"].launch()
    brokers["n2"].launch()
    brokers["n1"].wait_for_line("is not yet part of a cluster and serves no clients: waiting for n3")
    assert "waiting for n3" in refusal(brokers, "n1")
    # It has no users yet, and does not answer with a wrong password.
    answer = brokers["n1"].ask("whoami")
    assert answer is not None and answer.status_code == 503, answer
    brokers["n3"].launch()
    brokers.wait_until_whole()


def test_one_broker_founds_the_cluster_with_bootstrap_and_only_with_a_new_store(brokers: Cluster) -> None:
    brokers["n2"].start("--bootstrap")
    brokers["n3"].launch()
    brokers.wait_until_whole(2)
    brokers["n1"].launch()
    brokers.wait_until_whole()
    brokers["n2"].stop()
    mark = brokers["n2"].mark()
    brokers["n2"].launch("--bootstrap")
    assert brokers["n2"].wait_for_end() != 0
    assert brokers["n2"].lines("Start the broker without --bootstrap", mark)
