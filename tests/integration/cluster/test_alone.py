"""Two brokers, foreign brokers, a storm of clients, and Celery through a failover."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import alone_cases as cases

pytestmark = [pytest.mark.timeout(300)]


@pytest.mark.proves("R10")
def test_an_operator_promotes_the_survivor_of_two_brokers(tmp_path: Path) -> None:
    cases.promoted_survivor(tmp_path)


@pytest.mark.slow
@pytest.mark.proves("R37")
def test_of_two_brokers_the_one_that_stops_leaves_the_other_as_root(tmp_path: Path) -> None:
    cases.stopped_root_of_two(tmp_path)


@pytest.mark.slow
@pytest.mark.proves("R10")
def test_of_two_brokers_each_comes_back_by_itself(tmp_path: Path) -> None:
    cases.each_of_two_returns(tmp_path)


def test_a_broker_with_another_key_is_refused(tmp_path: Path) -> None:
    cases.wrong_key(tmp_path)


@pytest.mark.slow
@pytest.mark.proves("R21")
def test_a_broker_with_the_store_of_another_cluster_is_refused(tmp_path: Path) -> None:
    cases.foreign_store(tmp_path)


@pytest.mark.proves("R13")
def test_clients_that_lose_their_root_at_once_are_all_let_in_by_the_next_one(tmp_path: Path) -> None:
    """It has fewer clients, and a longer lease, than `make torture`: other tests may use the same machine."""
    cases.reconnect_storm(tmp_path, clients=1500, lease_ms=5_000)


@pytest.mark.slow
@pytest.mark.proves("R13")
def test_clients_that_lose_their_broker_at_once_are_all_let_in_by_the_others(tmp_path: Path) -> None:
    cases.storm_of_proxied(tmp_path, clients=1500, lease_ms=5_000)


def test_celery_tasks_survive_the_root(tmp_path: Path) -> None:
    cases.celery_through_a_failover(tmp_path)
