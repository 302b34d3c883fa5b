"""Runs `pandomq pipeline rollup`."""

from __future__ import annotations

import signal
from pathlib import Path

from pandomq.cli.pipeline.lake_jobs import refusing
from pandomq.cli.pipeline.running import finish, progress, session_for
from pandomq.pipeline.rollup.job import Rollup, Wish


def run(directory: Path, wish: Wish, window: str, master: str, json: Path | None, report: Path | None) -> None:
    with refusing(), session_for("rollup", master) as session:
        rollup = Rollup(session, directory.resolve(), wish)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: rollup.stop())
        with progress("events", None) as advance:
            rollup.run(advance)
        summary = rollup.summary(window)
    finish(summary, json, report)
