"""The demo's jobs on Spark: one archives the stream from the beginning on, others come when there is more to see."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pandomq.pipeline.summary import Summary
from tools.demo import lake
from tools.demo.account import Archived
from tools.demo.grove import DemoFailed, Grove
from tools.demo.job import Job
from tools.demo.words import STREAM

ARCHIVE_EVERY_S = 2.0
JOB_TIMEOUT_S = 180.0
LOOK_EVERY_S = 0.2


class Jobs:
    def __init__(self, directory: Path, grove: Grove) -> None:
        self._directory = directory / "jobs"
        self._directory.mkdir()
        self.lake = directory / "lake"
        self._grove = grove
        self._running: list[Job] = []
        self.summaries: list[Summary] = []
        """Of those that have ended."""
        self.taken_s: dict[str, float] = {}

    def begin(self) -> None:
        pattern = STREAM.replace(".", r"\.")
        self._archive = self._start("archive", str(self.lake), "--streams", pattern, "--every", str(ARCHIVE_EVERY_S))
        self._archive_began = time.monotonic()

    @property
    def archived_rows(self) -> int:
        return lake.rows_in(self.lake)

    def insist(self) -> None:
        """Raises DemoFailed if one of them has died."""
        for job in self._running:
            job.insist()

    def end_archive(self, rows: int, meanwhile: Callable[[], None]) -> Archived:
        """When it has so many rows, which is all there are."""
        self._wait(lambda: self.archived_rows >= rows, "the archive to be complete", meanwhile)
        self._archive.ask_to_end()
        self._finish(self._archive, self._archive_began, meanwhile)
        return lake.take_stock(self.lake)

    def run(self, name: str, arguments: Sequence[str], meanwhile: Callable[[], None]) -> Summary:
        """A job that ends by itself."""
        began = time.monotonic()
        return self._finish(self._start(name, *arguments), began, meanwhile)

    def end(self) -> None:
        for job in self._running:
            job.end()

    def _start(self, name: str, *arguments: str) -> Job:
        job = Job(name, arguments, self._directory)
        self._running.append(job)
        job.start(self._grove.url)
        return job

    def _finish(self, job: Job, began: float, meanwhile: Callable[[], None]) -> Summary:
        self._wait(lambda: not job.runs, f"{job.name} to end", meanwhile)
        summary = job.summary()
        self.summaries.append(summary)
        self.taken_s[job.name] = time.monotonic() - began
        return summary

    def _wait(self, condition: Callable[[], bool], what: str, meanwhile: Callable[[], None]) -> None:
        end = time.monotonic() + JOB_TIMEOUT_S
        while not condition():
            self.insist()
            if time.monotonic() > end:
                words = "\n".join(job.last_words() for job in self._running if job.runs)
                raise DemoFailed(f"waited too long for {what}:\n{words}")
            meanwhile()
            time.sleep(LOOK_EVERY_S)


@contextmanager
def jobs(directory: Path, grove: Grove) -> Iterator[Jobs]:
    """Whatever still runs at the end is ended."""
    found = Jobs(directory, grove)
    try:
        yield found
    finally:
        found.end()
