"""What was measured of the jobs: docs/pipelines.json holds it, and the page says nothing else about them."""

from typing import Final

import msgspec

from pandomq.bench.peers.machine import Machine
from pandomq.bench.peers.targets import Target

ARCHIVE: Final = "archive"
ROLLUP: Final = "rollup"
AUDIT: Final = "audit"

ARCHIVE_ROWS_MIN: Final = 100_000
AUDIT_RECORDS_MIN: Final = 200_000


class JobRun(msgspec.Struct, frozen=True):
    job: str
    messages: int
    """That were published."""
    body_bytes: int
    items: int
    """What the job has gone through: rows of a stream, events of the trace, or, of three logs, records that a message
    has entered or left a queue: an entry of a log has those of a whole batch."""
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
    """Until all were confirmed by the stream and the queue, and consumed from the queue, on three brokers."""


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
        """The rate with most messages, as a part of that with fewest."""
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
