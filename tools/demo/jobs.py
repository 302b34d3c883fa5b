"""The demo's jobs on Spark, each a separate step.

The archive reads the stream from the beginning. The rollup starts after the cluster's faults, and reads the brokers'
traces from the beginning; both continue while clients work. When all clients have stopped, the audit reads the brokers'
logs, and the ledgers of publishers and consumers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pandomq.pipeline.summary import Summary
from tools.demo import lake
from tools.demo.account import Archived
from tools.demo.grove import DemoFailed, Grove
from tools.demo.job import Job
from tools.demo.words import STREAM

EVERY_S = 2.0
"""The time between two batches of a continuous job."""
LATENESS_S = 2.0
"""All brokers have the same clock here."""
REST_S = 4 * EVERY_S
JOB_TIMEOUT_S = 300.0
LOOK_EVERY_S = 0.2


class Jobs:
    def __init__(self, directory: Path, grove: Grove) -> None:
        self._directory = directory / "jobs"
        self._directory.mkdir()
        self.lake = directory / "lake"
        self._grove = grove
        self._running: dict[str, Job] = {}
        self.summaries: list[Summary] = []
        """The summaries of the jobs that have ended."""
        self.taken_s: dict[str, float] = {}

    def begin_archive(self) -> None:
        pattern = STREAM.replace(".", r"\.")
        self._start("archive", str(self.lake), "--streams", pattern, "--every", str(EVERY_S))

    def begin_rollup(self) -> None:
        self._start("rollup", str(self.lake), "--every", str(EVERY_S), "--lateness", str(LATENESS_S))

    @property
    def archived_rows(self) -> int:
        return lake.rows_in(self.lake)

    def insist(self) -> None:
        """Raises DemoFailed if one of them has failed."""
        for job in self._running.values():
            job.insist()

    def end_archive(self, rows: int, meanwhile: Callable[[], None]) -> Archived:
        """Ends the archive when it has so many rows, which are all."""
        self._wait(lambda: self.archived_rows >= rows, "the archive to be complete", meanwhile)
        self._running["archive"].ask_to_end()
        self._finish("archive", meanwhile)
        return lake.take_stock(self.lake)

    def end_rollup(self, meanwhile: Callable[[], None]) -> None:
        """Ends the rollup when it has been idle for a while."""
        self._wait(lambda: lake.rollup_rests_s(self.lake) > REST_S, "the rollup to be complete", meanwhile)
        self._running["rollup"].ask_to_end()
        self._finish("rollup", meanwhile)

    def audit(self, ledgers: Path, meanwhile: Callable[[], None]) -> None:
        stores = [argument for directory in self._grove.data for argument in ("--data", str(directory))]
        notes = [argument for path in sorted(ledgers.iterdir()) for argument in ("--ledger", str(path))]
        self._start("audit", *stores, *notes)
        self._finish("audit", meanwhile)

    def end(self) -> None:
        for job in self._running.values():
            job.end()

    def _start(self, name: str, *arguments: str) -> None:
        job = self._running[name] = Job(name, arguments, self._directory)
        job.start(self._grove.url)

    def _finish(self, name: str, meanwhile: Callable[[], None]) -> None:
        job = self._running[name]
        self._wait(lambda: not job.runs, f"{name} to end", meanwhile)
        self.summaries.append(job.summary())
        self.taken_s[name] = time.monotonic() - job.began

    def _wait(self, condition: Callable[[], bool], what: str, meanwhile: Callable[[], None]) -> None:
        end = time.monotonic() + JOB_TIMEOUT_S
        while not condition():
            self.insist()
            if time.monotonic() > end:
                words = "\n".join(job.last_words() for job in self._running.values() if job.runs)
                raise DemoFailed(f"waited too long for {what}:\n{words}")
            meanwhile()
            time.sleep(LOOK_EVERY_S)


@contextmanager
def jobs(directory: Path, grove: Grove) -> Iterator[Jobs]:
    """Ends all running jobs at the end."""
    found = Jobs(directory, grove)
    try:
        yield found
    finally:
        found.end()
