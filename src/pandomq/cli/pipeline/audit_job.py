"""Runs `pandomq pipeline audit`."""

from __future__ import annotations

from pathlib import Path

import typer

from pandomq.cli.failures import RequestRejected, WrongUse
from pandomq.cli.pipeline.job_options import JobOptions
from pandomq.cli.pipeline.lake_jobs import micros
from pandomq.cli.pipeline.running import finish, progress, session_for
from pandomq.pipeline.audit.job import Audit, AuditOptions
from pandomq.pipeline.audit.stores import NoStore, list_stores
from pandomq.pipeline.audit.verdict import ExitCode, exit_code, summarize


def run(
    job: JobOptions,
    directories: list[Path],
    ledgers: list[Path],
    *,
    first: str | None,
    end: str | None,
    tolerance_s: float,
    notes: Path | None,
) -> None:
    missing = [str(path) for path in ledgers if not path.is_file()]
    if missing:
        raise WrongUse(f"ledgers not found: {', '.join(missing)}")
    options = AuditOptions(
        [directory.resolve() for directory in directories],
        ledgers,
        _millis(first),
        _millis(end),
        round(tolerance_s * 1000),
        notes,
    )
    try:
        files = sum(len(store.places) for store in list_stores(list(options.directories)))
        with session_for("audit", job.master) as session, progress("files", files) as advance:
            audit = Audit(session, options, advance)
            audit.run()
    except NoStore as none:
        raise RequestRejected(str(none)) from none
    summary = summarize(audit)
    finish(summary, job)
    if exit_code(audit.findings) is ExitCode.NOT_JUDGED:
        raise typer.Exit(ExitCode.NOT_JUDGED)


def _millis(text: str | None) -> int | None:
    time_us = micros(text)
    return None if time_us is None else time_us // 1000
