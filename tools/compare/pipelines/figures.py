"""The measurements of the jobs: docs/pipelines.json contains them, and is the only source of the page."""

from typing import Final

import msgspec

from tools.compare.peers.machine import Machine
from tools.compare.peers.targets import Target

ARCHIVE: Final = "archive"
ROLLUP: Final = "rollup"
AUDIT: Final = "audit"

ARCHIVE_ROWS_MIN: Final = 100_000
AUDIT_RECORDS_MIN: Final = 200_000


class JobRun(msgspec.Struct, frozen=True):
    job: str
    messages: int
    """Published messages."""
    body_bytes: int
    items: int
    """The items that the job has processed: rows of a stream, events of the trace, or, in three logs, records of a
    message that entered or left a queue: an entry of a log contains those of a whole batch."""
    unit: str
    seconds: float
    """Without the start of Spark."""
    note: str = ""

    @property
    def rate(self) -> float:
        return self.items / self.seconds


class Filling(msgspec.Struct, frozen=True):
    messages: int
    body_bytes: int
    seconds: float
    """Until the stream and the queue have confirmed all, and all are consumed from the queue, on three brokers."""


class PipelineFigures(msgspec.Struct, frozen=True):
    day: str
    minutes: float
    versions: dict[str, str]
    machine: Machine
    others_share: float
    fillings: list[Filling]
    runs: list[JobRun]
    lake_bytes: int
    """Of the largest archive."""

    def largest(self, job: str) -> JobRun | None:
        runs = [run for run in self.runs if run.job == job]
        return max(runs, key=lambda run: run.messages) if runs else None

    def growth(self, job: str) -> float | None:
        """The rate with most messages, relative to that with fewest."""
        runs = sorted((run for run in self.runs if run.job == job), key=lambda run: run.messages)
        return runs[-1].rate / runs[0].rate if len(runs) > 1 else None


def targets(figures: PipelineFigures) -> list[Target]:
    archive, audit = figures.largest(ARCHIVE), figures.largest(AUDIT)
    return [
        Target.at_least("archived", ARCHIVE_ROWS_MIN, None if archive is None else archive.rate, "rows/s"),
        Target.at_least(
            "audited, logs of three brokers", AUDIT_RECORDS_MIN, None if audit is None else audit.rate, "records/s"
        ),
    ]
