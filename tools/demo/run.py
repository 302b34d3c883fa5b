"""One run: clients work during the scheduled events while Spark reads; then all queues are drained, and the jobs
end."""

from __future__ import annotations

import argparse
import queue
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from tools.demo.account import Account
from tools.demo.crew import Crew
from tools.demo.display import Display
from tools.demo.grove import DemoFailed, Grove
from tools.demo.jobs import Jobs
from tools.demo.play import Play
from tools.demo.story import Story
from tools.demo.words import Heard, Listened, Progress, Published, Read, Report, Seen, Subscribed

PATIENCE_S = 150.0
"""The time for everything but publishing: clients start, a broker catches up, queues are drained."""
REFRESH_S = 0.2


class Run:
    def __init__(
        self,
        grove: Grove,
        jobs: Jobs | None,
        story: Story,
        options: argparse.Namespace,
        directory: Path,
        console: Console,
    ) -> None:
        self._grove = grove
        self._jobs = jobs
        self._story = story
        self._seconds: float = options.seconds
        self._account = Account()
        self._ledgers = directory / "ledgers"
        self._crew = Crew(grove, options, self._ledgers)
        self._display = Display(console, self._account.counters, story, options.seconds)
        self._archived_rows: int | None = None

    def to_its_end(self) -> Account:
        """Raises DemoFailed."""
        with self._display:
            self._display.tell("the three brokers form a cluster")
            if self._jobs is not None:
                self._jobs.begin_archive()
                self._display.tell("Spark is started to archive the stream")
            with at_work(self._crew):
                self._work()
            if self._jobs is not None:
                self._finish(self._jobs)
        return self._account

    def _work(self) -> None:
        """Lets the clients work until all events have happened, and each client has sent its last report."""
        account, crew = self._account, self._crew
        play = Play(self._grove, crew, account, self._story, self._seconds, self._display, self._jobs)
        started = began = time.monotonic()
        while not crew.all_reported(account):
            # Clients need a moment to start, a long one on a busy machine: the schedule begins when they have started.
            began = began if crew.at_work(account) else time.monotonic()
            published_s = time.monotonic() - began
            if time.monotonic() - started >= self._seconds + PATIENCE_S:
                raise DemoFailed("the demo and its clients did not finish")
            play.go_on(published_s)
            if published_s >= self._seconds and play.over:
                crew.stop_publishing.set()
            if crew.all_published(account):
                crew.stop_consuming.set()
            self._take_reports()
            self._look("draining" if crew.stop_publishing.is_set() else "publishing", published_s)

    def _look(self, phase: str, published_s: float) -> None:
        if self._jobs is not None:
            self._jobs.insist()
            self._archived_rows = self._jobs.archived_rows
            self._story.note_archived(self._archived_rows)
        self._story.look(self._grove.sight)
        if not self._crew.all_reported(self._account):
            self._story.measure(self._account.counters)
        self._display.show(published_s, phase, self._grove.sight, self._archived_rows)

    def _finish(self, jobs: Jobs) -> None:
        rows = max(reader.end_offset for reader in self._account.read)
        self._account.archived = jobs.end_archive(rows, lambda: self._look("archive", self._seconds))
        self._display.tell(f"the archive is complete: {self._account.archived.rows:,} rows")
        jobs.end_rollup(lambda: self._look("rollup", self._seconds))
        self._display.tell("the rollup is complete")
        jobs.audit(self._ledgers, lambda: self._look("audit", self._seconds))
        self._display.tell("the audit is complete")

    def _take_reports(self) -> None:
        """Takes all reports that have arrived, after waiting for one of them for a moment."""
        deadline = time.monotonic() + REFRESH_S
        while (left_s := deadline - time.monotonic()) > 0:
            try:
                self._take(self._crew.reports.get(timeout=left_s))
            except queue.Empty:
                return

    def _take(self, report: Report) -> None:
        account = self._account
        match report:
            case Progress():
                account.counters.add(report)
            case Published():
                account.published[report.publisher] = report
            case Seen():
                account.seen.append(report)
            case Subscribed():
                account.subscribed += 1
            case Heard():
                account.heard.append(report)
            case Listened():
                account.listened += 1
            case Read():
                account.read.append(report)
            case _:
                raise DemoFailed(f"{report.who} failed: {report.error}")


@contextmanager
def at_work(crew: Crew) -> Iterator[None]:
    try:
        crew.begin()
        yield
        crew.join()
    finally:
        crew.end()
