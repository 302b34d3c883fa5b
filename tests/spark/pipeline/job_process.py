"""One `pandomq pipeline …` in a process of its own, which can be killed, interrupted and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.integration.waiting import wait_until
from tests.spark.sessions import environment_in
from tests.spark.spark_cluster import kill_tree

PATIENCE_S = 600.0
END_PATIENCE_S = 120.0
LOG_TAIL_CHARS = 6000
SETTINGS = """\
spark.driver.memory 768m
spark.driver.extraJavaOptions -XX:-UsePerfData -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
spark.executor.memory 768m
spark.sql.shuffle.partitions 2
spark.sql.adaptive.enabled false
spark.sql.codegen.wholeStage false
spark.driver.host 127.0.0.1
spark.driver.bindAddress 127.0.0.1
spark.ui.enabled false
"""


class JobProcess:
    def __init__(self, directory: Path, *words: str, master: str = "local[2]") -> None:
        directory.mkdir(parents=True)
        self.directory = directory
        self.report = directory / "report.html"
        self._json = directory / "summary.json"
        self._log = directory / "log"
        self._words = [*words, "--master", master, "--json", str(self._json), "--report", str(self.report)]
        (directory / "spark-defaults.conf").write_text(SETTINGS)
        self._process: subprocess.Popen[bytes] | None = None
        self._family: list[psutil.Process] = []

    def start(self, *more: str) -> None:
        environment = {**os.environ, **environment_in(self.directory / "scratch")}
        environment |= {"SPARK_CONF_DIR": str(self.directory), "TMPDIR": str(self.directory / "scratch")}
        environment.pop("SPARK_HOME", None)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pandomq.cli.main", "pipeline", *self._words, *more],
                cwd=self.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_for(self, condition: Callable[[], object], what: str) -> None:
        """Waits while the job runs."""
        process = self._process
        assert process is not None

        def came() -> bool:
            if condition():
                return True
            assert process.poll() is None, f"it ended with {process.poll()} before there was {what}:\n{self.words}"
            return False

        try:
            wait_until(came, what, PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.words}") from None

    def kill(self) -> None:
        """Kills the process alone: its Java, which notices after a while, may still be at work."""
        assert self._process is not None
        self._family += psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.wait()

    def interrupt(self) -> None:
        """Interrupts it as ^C does in a terminal: all processes of the job receive the signal."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGINT)

    def wait(self, *codes: int) -> dict[str, Any]:
        """Returns its summary. It ends with 0, or one of these codes."""
        assert self._process is not None
        code = self._process.wait(PATIENCE_S)
        assert code in (codes or (0,)), f"it ended with {code}:\n{self.words}"
        found: dict[str, Any] = json.loads(self._json.read_text())
        return found

    def end(self) -> None:
        """Ends it with all processes that it started; those of a killed job end by themselves before long."""
        if self._process is not None and self._process.poll() is None:
            kill_tree(psutil.Process(self._process.pid))
            self._process.wait()
        _, alive = psutil.wait_procs(self._family, END_PATIENCE_S)
        for process in alive:
            kill_tree(process)
        assert not alive, f"what a killed job had started goes on: {alive}"

    @property
    def words(self) -> str:
        return self._log.read_text(errors="replace")[-LOG_TAIL_CHARS:]


@contextmanager
def job(directory: Path, *words: str, master: str = "local[2]") -> Iterator[JobProcess]:
    found = JobProcess(directory, *words, master=master)
    try:
        yield found
    finally:
        found.end()
