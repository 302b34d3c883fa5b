"""Runs `pandomq pipeline rollup`."""

from __future__ import annotations

from pathlib import Path

from pandomq.cli.pipeline.job_options import JobOptions
from pandomq.cli.pipeline.lake_jobs import refusing
from pandomq.cli.pipeline.running import finish, insist_on_broker, on_interruption, progress, session_for
from pandomq.pipeline.lake import Lake
from pandomq.pipeline.rollup.job import Rollup, RollupOptions


def run(job: JobOptions, directory: Path, options: RollupOptions, window: str) -> None:
    with refusing():
        Lake(directory.resolve())
    for url in options.urls:
        insist_on_broker(url)
    with refusing(), session_for("rollup", job.master) as session:
        rollup = Rollup(session, directory.resolve(), options)
        on_interruption(rollup.stop)
        with progress("events", None) as advance:
            rollup.run(advance)
        summary = rollup.summary(window)
    finish(summary, job)
