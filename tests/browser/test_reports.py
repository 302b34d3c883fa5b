"""The demo's report and those of the jobs, in a real browser: drawn and readable, wide and narrow, light and dark."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pandomq.pipeline import plots
from pandomq.pipeline.lake_contents import contents
from pandomq.pipeline.lake_records import LakeFile
from pandomq.pipeline.plots import Series
from pandomq.pipeline.report import render
from pandomq.pipeline.simulate import World, summarize
from pandomq.pipeline.summary import Plot, Summary, Table
from pandomq.sim.campaign import Job, run_job
from tools.demo.report import page as demo_page

from .chromium import Page
from .examination import examine
from .made_up_demo import account, story

LONG = "a.rather.long.name.of.a.queue.such.as.people.make.them.from.time.to.time"


def archive() -> Summary:
    files = [
        LakeFile(f"vhost=%2F/stream={name}/date=2026-11-16/00000001-0.parquet", 500_000, 2**27, 0, 499_999, 0, 1)
        for name in ("demo.journal", LONG)
    ]
    rate = plots.lines([Series("rows a second", [(1.5, 80_000), (4, 130_000), (9, 126_000)])], "seconds", "rows/s")
    facts = {"lake": f"/var/lib/{LONG}/lake", "rows": 1_000_000, "files": 2, "seconds": 9.1}
    return Summary(
        "archive", "1,000,000 rows more are in the lake", True, facts, [contents(files)], [Plot("Rows a second", rate)]
    )


def simulate() -> Summary:
    begun_s = time.monotonic()
    worlds = [World(run_job(Job(seed, 3)), 40 * seed, "1.0") for seed in (1, 2)]
    return summarize(worlds, Job(1, 3), time.monotonic() - begun_s)


def everything_else() -> Summary:
    """Whatever a job may draw, with names and figures that are unkind to a page."""
    marks = [plots.Mark(at, f"{LONG} has happened") for at in (0.0, 0.1, 0.2, 5.0, 9.9, 10.0)]
    series = [Series(f"{LONG} {number}", [(0, number), (5, 10.0**number), (10, 1)]) for number in range(7)]
    drawn = [
        Plot("Lines", plots.lines(series, f"seconds since {LONG}", LONG, marks)),
        Plot("Powers", plots.lines(series, "s", "ms", marks, logarithmic=True)),
        Plot("Bars", plots.bars([(LONG, 123_456_789.0), ("b", 0.0)], "messages")),
        Plot("Time line", plots.time_line(marks, 10)),
        Plot("Nothing", plots.lines([], "", "")),
        Plot("A point", plots.lines([Series("one", [(3, 4)])], "seconds", "")),
    ]
    table = Table(LONG, ("name", LONG, "flag"), [(LONG * 3, 1234567.0, True), ("", 0.001, None)])
    return Summary("audit", f"{LONG} is lost", False, {LONG: LONG * 2}, [table], drawn)


@pytest.mark.proves("S7")
@pytest.mark.parametrize("make", [archive, simulate, everything_else])
def test_a_job(page: Page, tmp_path: Path, pictures: Path, make: Callable[[], Summary]) -> None:
    summary = make()
    path = tmp_path / f"{make.__name__}.html"
    path.write_text(render(f"PandoMQ: {summary.job}", [summary]))
    for looked in examine(page, path, pictures):
        assert looked["title"] == f"PandoMQ: {summary.job}"
        assert len(looked["drawings"]) == len(summary.plots)


@pytest.mark.parametrize("deaf", [False, True])
def test_the_demo(page: Page, tmp_path: Path, pictures: Path, deaf: bool) -> None:
    path = tmp_path / f"demo-{'deaf' if deaf else 'whole'}.html"
    path.write_text(demo_page(story(), account(deaf=deaf), [archive()]))
    for looked in examine(page, path, pictures):
        assert len(looked["drawings"]) == 5
        assert len(looked["drawn"]) > 20
