"""The order of test files when several processes share the tests.

A file stays in one process. Long files come first: if one began last, the other processes would be idle while it runs.
Tests of two kinds run beside each other: some compute, and use a core by themselves; most wait for brokers, which are
other processes. One process begins with the files that compute, all others with those that wait, and each continues
with the other kind when its own is done. Within a file the order stays as it is written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from xdist.scheduler.loadfile import LoadFileScheduling
from xdist.workermanage import WorkerController

TESTS: Final = f"{Path(__file__).parents[1]}/"

FIRST: Final = (
    "sim/test_brokers.py",
    "integration/cluster",
    "integration/test_lease_restarts.py",
    "integration/test_celery",
    "integration/test_demo",
    "sim",
    "integration",
    "fuzz",
    "packaging",
    "browser",
    "spec",
)
"""Files and directories, by the time of their files; all others come after them."""

COMPUTING: Final = ("tests/sim/", "tests/unit/")
"""Tests that start no broker."""
COMPUTING_WORKER: Final = "gw0"


def put_long_ones_first(items: list[pytest.Item]) -> None:
    """Needs `--no-loadscope-reorder`, without which files with many tests go before those with long ones."""
    items.sort(key=lambda item: _rank(str(item.path).removeprefix(TESTS)))


def _rank(place: str) -> int:
    return next((rank for rank, start in enumerate(FIRST) if place.startswith(start)), len(FIRST))


class TwoKinds(LoadFileScheduling):  # type: ignore[misc]  # It ships without types.
    """Gives a process the next file of its kind, as long as there is one."""

    def _assign_work_unit(self, node: WorkerController) -> None:
        file = next_file(list(self.workqueue), node.gateway.id)
        self.workqueue.move_to_end(file, last=False)
        super()._assign_work_unit(node)


def next_file(files: list[str], worker: str) -> str:
    computes = worker == COMPUTING_WORKER
    return next((file for file in files if file.startswith(COMPUTING) == computes), files[0])


def scheduler(config: pytest.Config, log: Any) -> TwoKinds | None:
    """Returns the scheduler for `--dist loadfile`; pytest-xdist has those for other modes."""
    return TwoKinds(config, log) if config.getoption("dist") == "loadfile" else None
