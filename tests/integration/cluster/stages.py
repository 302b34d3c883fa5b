"""The stages of cases: each makes a cluster in which its faults are possible, or returns why it cannot."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from . import disks, network
from .cluster import Cluster, running
from .disk_cases import NAMES, SMALL_DISK_CASES, STALLING_DISK_CASES, small_disks, stalling_disks
from .network_cases import NETWORK_CASES
from .process_cases import PROCESS_CASES
from .scene import Case


@contextlib.contextmanager
def loopback(directory: Path) -> Iterator[Cluster]:
    with running(Cluster(directory)) as cluster:
        yield cluster


@contextlib.contextmanager
def networked(directory: Path) -> Iterator[Cluster]:
    """Each broker in a network namespace of its own."""
    lab = network.Network(NAMES)
    try:
        lab.open()
        with running(Cluster(directory, network=lab)) as cluster:
            yield cluster
    finally:
        lab.close()


@dataclass(frozen=True)
class Stage:
    name: str
    cases: list[Case]
    open: Callable[[Path], contextlib.AbstractContextManager[Cluster]]
    missing: Callable[[], str | None] = lambda: None


STAGES = [
    Stage("processes", PROCESS_CASES, loopback),
    Stage("network", NETWORK_CASES, networked, network.missing),
    Stage("small disks", SMALL_DISK_CASES, small_disks, disks.missing),
    Stage("stalling disks", STALLING_DISK_CASES, stalling_disks, disks.missing),
]
