"""A standalone Spark cluster on this machine: a master and workers of one core each, started from the installed wheel.

Each is a process that is ended by its pid. Executors are the children of workers: killing one is what a machine's
loss looks like to a query.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import psutil
import pyspark

from tests.integration.waiting import wait_until

from .sessions import prepare_environment

PATIENCE_S = 200.0
HOME = Path(pyspark.__file__).parent
MASTER_LINE = re.compile(r"Starting Spark master at (spark://\S+)")
JOINED_LINE = re.compile(r"Successfully registered with master")
EXECUTOR_CLASS = "CoarseGrainedExecutorBackend"
END_PATIENCE_S = 15.0


class SparkCluster:
    """`start` returns once the workers have joined."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        self.directory = directory
        self.url = ""
        self._worker_count = workers
        self._master: SparkProcess | None = None
        self._workers: list[SparkProcess] = []

    def start(self) -> None:
        prepare_environment(self.directory)
        listen = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        self._master = SparkProcess("org.apache.spark.deploy.master.Master", self.directory / "master", *listen)
        self.url = self._master.wait_for(MASTER_LINE)[1]
        for number in range(self._worker_count):
            place = self.directory / f"worker-{number}"
            share = ["--cores", "1", "--memory", "1g", "--work-dir", str(place / "work")]
            self._workers.append(
                SparkProcess("org.apache.spark.deploy.worker.Worker", place, *listen, *share, self.url)
            )
        for worker in self._workers:
            worker.wait_for(JOINED_LINE)

    def executors(self) -> list[psutil.Process]:
        found: list[psutil.Process] = []
        for worker in self._workers:
            for child in worker.children():
                try:
                    if any(EXECUTOR_CLASS in word for word in child.cmdline()):
                        found.append(child)
                except psutil.Error:
                    # It ended during the check.
                    continue
        return found

    def kill_executor(self) -> None:
        """Kills the first executor, with the Python workers below it, as the loss of a machine does."""
        wait_until(self.executors, "an executor", PATIENCE_S)
        kill_tree(self.executors()[0])

    def end(self) -> None:
        for process in [*self._workers, *([self._master] if self._master else [])]:
            process.end()


class SparkProcess:
    """One `spark-class`, with a log of its own."""

    def __init__(self, name: str, directory: Path, *words: str) -> None:
        directory.mkdir(parents=True)
        self._log = directory / "log"
        environment = {
            **os.environ,
            "SPARK_HOME": str(HOME),
            "SPARK_LOG_DIR": str(directory),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(HOME / "bin" / "spark-class"), name, *words],
                cwd=directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def wait_for(self, line: re.Pattern[str]) -> re.Match[str]:
        def found() -> re.Match[str] | None:
            words = self._log.read_text(errors="replace")
            assert self._process.poll() is None, words
            return line.search(words)

        wait_until(found, f"{line.pattern!r} in {self._log}", PATIENCE_S)
        match = found()
        assert match is not None
        return match

    def children(self) -> list[psutil.Process]:
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.Error:
            return []

    def end(self) -> None:
        """Ends it with all processes that it started."""
        started = self.children()
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(END_PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for process in started:
            kill_tree(process)


def kill_tree(process: psutil.Process) -> None:
    try:
        below = process.children(recursive=True)
        process.kill()
    except psutil.Error:
        return
    for child in below:
        try:
            child.kill()
        except psutil.Error:
            continue
