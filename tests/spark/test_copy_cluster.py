"""Stream to stream on a standalone cluster, while an executor is killed, the driver is killed and its query restarted
from the checkpoint, and the root is killed: every row once, in order."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.integration.cluster.cluster import Cluster, running
from tests.integration.waiting import wait_until

from . import ledger
from .sessions import REPOSITORY
from .spark_cluster import SparkCluster, kill_tree

PATIENCE_S = 300.0
LOG_TAIL_CHARS = 6000


class CopyProgram:
    """The driver, as a process that can be killed and started again."""

    def __init__(self, master: str, url: str, sources: list[str], copy: str, directory: Path) -> None:
        directory.mkdir()
        self._words = [master, url, ",".join(sources), copy, str(directory / "checkpoint")]
        self._log = directory / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.spark.copy_program", *self._words],
                cwd=REPOSITORY,
                env=dict(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def wait_for_batches(self, count: int) -> None:
        """Waits until there are so many more batches."""
        before = self._batches()

        def came() -> bool:
            assert self._process is not None and self._process.poll() is None, self._log.read_text()
            return self._batches() >= before + count

        try:
            wait_until(came, f"{count} batches", PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self._log.read_text()[-LOG_TAIL_CHARS:]}") from None

    def kill(self) -> None:
        """Kills it with its Java and all other processes that it started."""
        if self._process is not None and self._process.poll() is None:
            kill_tree(psutil.Process(self._process.pid))
            self._process.wait()

    def _batches(self) -> int:
        return len(re.findall(r"(?m)^batch ", self._log.read_text())) if self._log.exists() else 0


@pytest.fixture
def spark_cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    cluster = SparkCluster(tmp_path / "spark")
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.proves("S1", "S2", "S3", "S7")
def test_a_copy_outlives_its_executor_its_driver_and_the_root(spark_cluster: SparkCluster, tmp_path: Path) -> None:
    with running(Cluster(tmp_path / "brokers")) as brokers:
        for name in ("orders", "returns", "copy"):
            ledger.declare_stream(brokers.connect, name)
        url = ",".join(brokers.urls)
        program = CopyProgram(spark_cluster.url, url, ["orders", "returns"], "copy", tmp_path / "driver")
        try:
            with ledger.publishing(brokers.connect, "orders", "returns") as publishers:
                program.start()
                program.wait_for_batches(3)
                spark_cluster.kill_executor()
                program.wait_for_batches(3)
                program.kill()
                program.start()
                program.wait_for_batches(3)
                killed = brokers.root
                killed.kill()
                brokers.wait_for_root(other_than=killed)
                program.wait_for_batches(3)
                killed.launch()
                brokers.wait_until_in_sync(killed.name)
                program.wait_for_batches(2)
            assert ledger.check_copy(brokers.connect, publishers, "copy") > 0
        finally:
            program.kill()
