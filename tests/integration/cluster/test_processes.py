"""Brokers that are killed, suspended, restarted and asked to end, and stores that were damaged meanwhile, under load.

Before that: the links between the brokers.
"""

from __future__ import annotations

from random import Random

import pika
import pika.exceptions
import psutil
import pytest

from . import process_cases as cases
from .cluster import Cluster
from .scene import Case, play

pytestmark = [pytest.mark.timeout(300)]


@pytest.mark.proves("R2")
def test_each_broker_is_connected_to_each_other_once_in_either_direction(cluster: Cluster) -> None:
    ports = {broker.port: broker.name for broker in cluster}
    for broker in cluster:
        established = [
            connection
            for connection in psutil.Process(broker.pid).net_connections("tcp")
            if connection.status == psutil.CONN_ESTABLISHED
        ]
        dialed = [ports[connection.raddr.port] for connection in established if connection.raddr.port in ports]
        assert sorted(dialed) == sorted(other.name for other in cluster if other is not broker)
        links = broker.status["links"]
        assert [link["state"] for link in links] == ["linked"] * 2, links


@pytest.mark.proves("R8", "R9", "R24", "L3", "L4", "L5")
def test_the_root_is_killed(cluster: Cluster, chance: Random) -> None:
    play(cases.kill_root, cluster, chance)


def test_the_root_is_frozen(cluster: Cluster, chance: Random) -> None:
    play(cases.freeze_root, cluster, chance)


@pytest.mark.proves("R10")
def test_confirmed_messages_survive_a_power_loss_of_all_brokers(cluster: Cluster, chance: Random) -> None:
    play(cases.power_loss, cluster, chance)


def test_a_corrupted_segment_is_repaired(cluster: Cluster, chance: Random) -> None:
    play(cases.corrupt_backup, cluster, chance)


@pytest.mark.proves("R37")
def test_clients_of_a_root_that_stops_are_sent_to_the_next_one(cluster: Cluster) -> None:
    root = cluster.root
    connection = pika.BlockingConnection(root.parameters())
    mark = root.mark()
    root.terminate()
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker) as closed:
        connection.process_data_events(time_limit=60)
    assert root.wait_for_end() == 0
    heir = cluster.wait_for_root(other_than=root)
    assert closed.value.reply_code == 320
    assert f"the next root is {heir.name} at {heir.address}" in closed.value.reply_text
    assert root.lines(f"handed over to {heir.name}", mark)
    root.start()
    cluster.wait_until_whole()


@pytest.mark.proves("R37")
def test_a_rolling_restart_loses_nothing(cluster: Cluster, chance: Random) -> None:
    marks = {broker.name: broker.mark() for broker in cluster}
    play(cases.rolling_restart, cluster, chance)
    assert any(broker.lines("handed over to", marks[broker.name]) for broker in cluster)


QUICK = {cases.kill_root, cases.freeze_root, cases.power_loss, cases.corrupt_backup, cases.rolling_restart}


@pytest.mark.slow
@pytest.mark.parametrize("case", [case for case in cases.PROCESS_CASES if case not in QUICK])
def test_the_other_cases(case: Case, cluster: Cluster, chance: Random) -> None:
    play(case, cluster, chance)


@pytest.mark.slow
@pytest.mark.parametrize("case", [cases.kill_root, cases.power_loss, cases.wipe_backup])
def test_with_quorum_queues(case: Case, cluster: Cluster, chance: Random) -> None:
    play(case, cluster, chance, {"x-queue-type": "quorum"})
