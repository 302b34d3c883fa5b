"""One `pandomq pipeline …` in a process of its own: started, asked to end, or killed.

All files of Spark are in the demo's directory, so that a job that was killed leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from pandomq.pipeline.summary import Summary
from tools.demo.grove import DemoFailed

NICENESS = 3
"""Brokers and clients take precedence over Spark, which would use the whole processor."""
MEMORY = "768m"
JAVA_OPTIONS = "-XX:-UsePerfData -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for programs that end before a better compiler would pay."""
END_TIMEOUT_S = 60.0
LAST_WORDS = 1500
CODES = (0, 1, 3)
"""All is well; something is wrong; something could not be judged: the summary has the details."""
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)


class Job:
    def __init__(self, name: str, arguments: Sequence[str], directory: Path) -> None:
        """All files of the job are written to `directory`, which exists."""
        self.name = name
        self._directory = directory
        self._log = directory / f"{name}.log"
        self._json = directory / f"{name}.json"
        self._command = [
            *("nice", "-n", str(NICENESS)),
            str(Path(sys.executable).with_name("pandomq")),
            *("pipeline", name, *arguments),
            *("--json", str(self._json)),
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self.began = time.monotonic()

    def start(self, url: str) -> None:
        with self._log.open("wb") as log, uninterrupted():
            self._process = subprocess.Popen(
                self._command,
                env={**os.environ, "PANDOMQ_AMQP_URL": url, **_surroundings(self._directory)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def insist(self) -> None:
        """Raises DemoFailed if it has failed."""
        code = None if self._process is None else self._process.poll()
        if code is not None and (code not in CODES or not self._json.exists()):
            raise DemoFailed(f"{self.name} exited unexpectedly, with status {code}:\n{self.last_words()}")

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def ask_to_end(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)

    def summary(self) -> Summary:
        """Returns the result of the ended job. Raises DemoFailed if there is none."""
        self.insist()
        return Summary.from_json(self._json.read_text())

    def last_words(self) -> str:
        return self._log.read_text(errors="replace")[-LAST_WORDS:]

    def end(self) -> None:
        """Ends the job now, with all processes that it started: Java, and Python processes of Java."""
        if self._process is None or not self.runs:
            return
        family = [psutil.Process(self._process.pid)]
        with contextlib.suppress(psutil.NoSuchProcess):
            family += family[0].children(recursive=True)
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.wait()
        psutil.wait_procs(family, END_TIMEOUT_S)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delays an interruption until the new process is recorded as one to be ended. The child's signals are not
    changed."""
    came: list[int] = []
    before = {number: signal.signal(number, lambda number, _: came.append(number)) for number in INTERRUPTIONS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            raise KeyboardInterrupt


def _surroundings(directory: Path) -> dict[str, str]:
    """Returns the environment with the places of Spark's settings and files."""
    settings = directory / "spark-defaults.conf"
    if not settings.exists():
        scratch = directory / "scratch"
        scratch.mkdir()
        settings.write_text(
            f"spark.driver.memory {MEMORY}\n"
            f"spark.driver.extraJavaOptions -Djava.io.tmpdir={scratch} {JAVA_OPTIONS}\n"
            "spark.sql.shuffle.partitions 4\n"
            f"spark.sql.warehouse.dir {directory / 'warehouse'}\n"
        )
    return {
        "SPARK_CONF_DIR": str(directory),
        "SPARK_LOCAL_DIRS": str(directory / "scratch"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TMPDIR": str(directory / "scratch"),
    }
