"""Fixtures of the cluster tests: clusters that live for a module, with the isolation that this machine allows."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from . import disks, network
from .cluster import Cluster, running
from .disk_cases import DiskCluster, small_disks, stalling_disks
from .stages import loopback, networked


@pytest.fixture(autouse=True)
def broker_stays_healthy() -> None:
    """The neighbouring tests share one broker; these have their own."""


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> Random:
    """The same in each run: `make torture` uses other seeds."""
    return Random(request.node.name)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three brokers on loopback."""
    with loopback(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def shared_proxies(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with running(Cluster(tmp_path_factory.mktemp("proxies"))) as cluster:
        yield cluster


@pytest.fixture
def proxies(shared_proxies: Cluster) -> Cluster:
    """Three brokers that all serve clients, and all run, even if the test before has stopped one."""
    shared_proxies.make_whole()
    return shared_proxies


@pytest.fixture(scope="module")
def cluster_in_namespaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    skip_unless_possible(network.missing())
    with networked(tmp_path_factory.mktemp("networked")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def on_small_disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DiskCluster]:
    skip_unless_possible(disks.missing())
    with small_disks(tmp_path_factory.mktemp("small")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def on_stalling_disks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DiskCluster]:
    skip_unless_possible(disks.missing())
    with stalling_disks(tmp_path_factory.mktemp("stalling")) as cluster:
        yield cluster


def skip_unless_possible(reason: str | None) -> None:
    if reason is not None:
        pytest.skip(reason)
