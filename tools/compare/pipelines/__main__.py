"""`make bench-pipelines`: the jobs of `pandomq pipeline` on the messages of three brokers; writes docs/pipelines.json
and docs/benchmarks.md."""

from __future__ import annotations

import argparse
import base64
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pandomq.bench.client.session import LoadSession
from pandomq.pipeline.archive import Archive, ArchiveOptions
from pandomq.pipeline.audit.job import Audit, AuditOptions
from pandomq.pipeline.audit.verdict import summarize
from pandomq.pipeline.lake import Lake
from pandomq.pipeline.rollup.job import Rollup, RollupOptions
from pandomq.pipeline.session import spark_session
from tools.compare.clusters.disks import Disk
from tools.compare.clusters.member import PASSWORD, USER, Member
from tools.compare.clusters.pando import PandoCluster
from tools.compare.clusters.places import places
from tools.compare.peers import documents
from tools.compare.peers.machine import this_machine
from tools.compare.peers.other_work import OtherWork
from tools.compare.pipelines import filling
from tools.compare.pipelines.figures import ARCHIVE, AUDIT, ROLLUP, Filling, JobRun, PipelineFigures
from tools.compare.pipelines.filling import STREAM

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS: Final = Path(__file__).parents[3] / "docs"
WARM_UP: Final = 20_000
"""The number of messages for a first run of each job, which does not count: Spark compiles meanwhile."""
ROUND_S: Final = 20.0
"""The duration of a round without messages: brokers start, and queries start."""
DISK_BYTES_PER_MESSAGE: Final = 1500
"""The disk space beyond twelve times the body: logs, chunks, files for the audit, of three brokers, and the lake."""

RETAINED_BYTES: Final = 10**12
"""The amount of log that each broker retains for the audit: the whole log."""

HTTP_TIMEOUT_S: Final = 30.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.compare.pipelines", description=__doc__)
    sizes = [1_000_000, 10_000_000]
    parser.add_argument(
        "--messages",
        type=int,
        nargs="+",
        default=sizes,
        help="Numbers of messages, with one round for each (default 1 and 10 million).",
    )
    parser.add_argument("--body", type=int, default=100, help="Size of a body in bytes (default 100).")
    parser.add_argument(
        "--minutes",
        type=float,
        default=14.0,
        help="Maximum duration of a round in minutes; more messages are left out (default 14).",
    )
    parser.add_argument(
        "--work",
        type=Path,
        help="Directory for brokers and lakes during the measurement (default: a temporary directory).",
    )
    parser.add_argument(
        "--out", type=Path, default=DOCS, help="Directory for pipelines.json and benchmarks.md (default docs/)."
    )
    parser.add_argument("--page", action="store_true", help="Only write the page again from the JSON file.")
    options = parser.parse_args()
    if not options.page:
        os.environ["PANDOMQ_LOG_RETAIN_FOR_AUDIT_BYTES"] = str(RETAINED_BYTES)
        # Brokers run in sessions of their own, so a signal that ends this process must end them, too.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        with tempfile.TemporaryDirectory(prefix="bench-pipelines-", dir=options.work) as work:
            bench = Bench(Path(work), options)
            figures = bench.measure()
        documents.write_figures(options.out / documents.PIPELINES, figures)
    documents.write_page(options.out, DOCS)
    return int(not options.page and bench.failed)


def say(text: str) -> None:
    sys.stderr.write(f"{datetime.now(UTC):%H:%M:%S} {text}\n")
    sys.stderr.flush()


class Bench:
    def __init__(self, work: Path, options: argparse.Namespace) -> None:
        self._work = work
        self._options = options
        self._begun_s = time.monotonic()
        self._fillings: list[Filling] = []
        self._runs: list[JobRun] = []
        self._lake_bytes = 0
        self._version = ""
        self.failed = False
        """Whether a job could not be measured."""

    def measure(self) -> PipelineFigures:
        others = OtherWork()
        with spark_session("bench", settings={"spark.driver.memory": "3g"}) as session:
            version = session.version
            self._round(session, WARM_UP, counts=False)
            before_s = 0.0
            for messages in sorted(self._options.messages):
                fitting = self._fitting(messages, before_s)
                begun_s = time.monotonic()
                self._round(session, fitting, counts=True)
                before_s = max(0.0, time.monotonic() - begun_s - ROUND_S) / fitting
        return PipelineFigures(
            day=datetime.now(UTC).date().isoformat(),
            minutes=round((time.monotonic() - self._begun_s) / 60, 1),
            versions={"broker": self._version, "spark": f"Spark {version}"},
            machine=this_machine(),
            others_share=others.share(),
            fillings=self._fillings,
            runs=self._runs,
            lake_bytes=self._lake_bytes,
        )

    def _fitting(self, messages: int, message_s: float) -> int:
        """Returns as many messages as fit: in time, by the time of each message in the round before, and on the
        disk."""
        left_s = self._options.minutes * 60 - (time.monotonic() - self._begun_s) - ROUND_S
        in_time = int(left_s / message_s) if message_s else messages
        on_disk = shutil.disk_usage(self._work).free // (12 * self._options.body + DISK_BYTES_PER_MESSAGE)
        fitting: int = max(WARM_UP, min(messages, in_time, on_disk))
        if fitting < messages:
            say(f"{messages:,} messages are too many: there is time for {in_time:,}, and disk space for {on_disk:,}")
        return fitting

    def _round(self, session: SparkSession, messages: int, *, counts: bool) -> None:
        directory = self._work / str(messages)
        with cluster(directory) as brokers:
            root = brokers.leader(0)
            with LoadSession(root.url) as asked:
                self._version = asked.server_version
            filling.declare(root.url)
            switch_on_tracing(root)
            seconds = filling.fill(root.url, messages, self._options.body)
            say(
                f"{messages:,} messages: published and consumed in {seconds:.1f} s, {messages / seconds:,.0f} per "
                "second"
            )
            if counts:
                self._fillings.append(Filling(messages, self._options.body, seconds))
            jobs = {
                ARCHIVE: partial(self._archive, session, brokers, directory / "lake", messages, counts=counts),
                ROLLUP: partial(self._rollup, session, brokers, directory / "lake", messages, counts=counts),
                AUDIT: partial(self._audit, session, brokers, messages, counts=counts),
            }
            for job, run in jobs.items():
                try:
                    run()
                except Exception as failure:
                    # The results of the other jobs are kept.
                    self.failed = True
                    say(f"{messages:,} messages: {job} failed: {failure}")
        shutil.rmtree(directory)

    def _archive(
        self, session: SparkSession, brokers: PandoCluster, directory: Path, messages: int, *, counts: bool
    ) -> None:
        begun_s = time.monotonic()
        summary = Archive(session, Lake(directory), ArchiveOptions(url_of(brokers), STREAM, once=True)).run()
        self._note(JobRun(ARCHIVE, messages, self._options.body, messages, "rows", time.monotonic() - begun_s), counts)
        if summary.facts["rows in the lake"] != messages:
            raise RuntimeError(f"the lake has {summary.facts['rows in the lake']} rows, expected {messages}")
        if counts:
            self._lake_bytes = sum(file.bytes for file in Lake(directory).files())

    def _rollup(
        self, session: SparkSession, brokers: PandoCluster, directory: Path, messages: int, *, counts: bool
    ) -> None:
        rollup = Rollup(session, directory, RollupOptions((url_of(brokers),), once=True))
        begun_s = time.monotonic()
        rollup.run()
        seconds = time.monotonic() - begun_s
        events = sum(vhost.events for vhost in rollup.vhosts)
        if events < messages:
            raise RuntimeError(f"only {events} events of {messages} messages were rolled up")
        self._note(JobRun(ROLLUP, messages, self._options.body, events, "events", seconds), counts)

    def _audit(self, session: SparkSession, brokers: PandoCluster, messages: int, *, counts: bool) -> None:
        begun_s = time.monotonic()
        directories = [member.disk.directory / "data" for member in brokers.members]
        audit = Audit(session, AuditOptions(directories))
        audit.run()
        seconds = time.monotonic() - begun_s
        summary, account = summarize(audit), audit.account
        if not summary.good or account.gaps or account.entered < len(filling.SHAPES) * messages:
            raise RuntimeError(f"the audit did not cover {messages} messages: {summary.verdict}; {summary.facts}")
        # Every log is read, and compared with the others.
        records = len(directories) * (account.entered + account.left)
        note = f"{account.entries:,} entries, {account.bytes_read / 1e9:.1f} GB"
        self._note(JobRun(AUDIT, messages, self._options.body, records, "records", seconds, note), counts)

    def _note(self, run: JobRun, counts: bool) -> None:
        went = f"{run.items:,} {run.unit} in {run.seconds:.1f} s, {run.rate:,.0f} per second"
        say(f"{run.messages:,} messages: {run.job} of {went}")
        if counts:
            self._runs.append(run)


def url_of(brokers: PandoCluster) -> str:
    return ",".join(f"{member.address}%2F" for member in brokers.members)


def switch_on_tracing(root: Member) -> None:
    """Turns tracing on, for all messages."""
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    asked = urllib.request.Request(
        f"http://{root.place.http}/api/vhosts/%2F",
        data=json.dumps({"tracing": True, "trace_sample": 1.0}).encode(),
        headers={"Authorization": f"Basic {login}", "Content-Type": "application/json"},
        method="PUT",
    )
    with urllib.request.urlopen(asked, timeout=HTTP_TIMEOUT_S):
        pass


@contextmanager
def cluster(directory: Path) -> Iterator[PandoCluster]:
    with places(3, apart=False) as found:
        members = [
            Member(f"n{number}", place, Disk(directory / f"n{number}")) for number, place in enumerate(found, start=1)
        ]
        brokers = PandoCluster(members)
        try:
            brokers.start()
            yield brokers
        finally:
            brokers.close()


if __name__ == "__main__":
    sys.exit(main())
