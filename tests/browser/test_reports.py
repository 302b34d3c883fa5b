"""The demo's report and those of the jobs, in a real browser: drawn and readable, wide and narrow, light and dark."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from pandomq.pipeline import plots
from pandomq.pipeline.audit.findings import CutOff, Promise, Violation
from pandomq.pipeline.audit.job import Audit, AuditOptions
from pandomq.pipeline.audit.segment_scan import scan_segment
from pandomq.pipeline.audit.verdict import summarize as summarize_audit
from pandomq.pipeline.lake_contents import contents
from pandomq.pipeline.lake_records import LakeFile
from pandomq.pipeline.plots import Series
from pandomq.pipeline.report import render
from pandomq.pipeline.rollup.batch_filter import Story
from pandomq.pipeline.rollup.story import summarize as summarize_rollup
from pandomq.pipeline.simulate import summarize
from pandomq.pipeline.simulate_notes import WorldResult
from pandomq.pipeline.summary import Chart, Summary, SummaryTable
from pandomq.sim.campaigns.campaign import Job, run_job
from tests.support.log_editor import change_entries
from tests.support.traces import BEGIN_US, batches
from tests.unit.pipeline.test_audit_logs import NAMES, compared, log_of, make_store, payload
from tests.unit.pipeline.test_rollup_story import story_of
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
        "archive",
        "1,000,000 rows were added to the lake",
        True,
        facts,
        [contents(files)],
        [Chart("Rows a second", rate)],
    )


def simulate() -> Summary:
    begun_s = time.monotonic()
    worlds = [WorldResult(run_job(Job(seed, 3)), 40 * seed, "1.0") for seed in (1, 2)]
    return summarize(worlds, Job(1, 3), time.monotonic() - begun_s)


def rollup() -> Summary:
    """The rollup of synthetic traces of two vhosts, as executors would compute it."""
    elected = Story(BEGIN_US + 20_000_000, "b1", '{"event":"elected","broker":"b1","term":4}')
    stories = [story_of(batches(seed, 400, 200_000), f"vhost {seed}", (elected,)) for seed in (1, 2)]
    return summarize_rollup(stories, "10s", {"lake": f"/var/lib/{LONG}"}, 4321)


def audit(directory: Path) -> Summary:
    """The audit of three synthetic logs, of which one has another entry than the others, with all possible findings."""
    stores = [make_store(directory, name, log_of(2000), cuts=4) for name in NAMES]
    change_entries(stores[:1], lambda index, term, data: (term, payload(7) if index == 700 else data))
    found = Audit(cast(Any, None), AuditOptions(stores))
    _, found.findings = compared(*stores)
    found.findings.of(Promise.CONFIRMED).judged = 100
    found.findings.of(Promise.CONFIRMED).breaks(
        Violation(Promise.CONFIRMED, "was confirmed, and never entered it", "an entry", f"id of {LONG}", LONG, 7, 8)
    )
    found.findings.of(Promise.ORDER).left_out("messages that were published twice", 5)
    found.findings.cuts(CutOff(f"/var/lib/{LONG}/aside-1", "n1", 700, LONG, 9, "m1"))
    found.account.segments = [scan_segment(place) for store in found.stores for place in store.places]
    found.account.index_span, found.account.time_span = (1, 2000), (1_700_000_000_000, 1_700_000_100_000)
    found.account.lines = {"confirmed": 100}
    return summarize_audit(found)


def everything_else() -> Summary:
    """All charts of jobs, with names and figures that are difficult to display."""
    marks = [plots.TimelineMark(at, f"{LONG} has happened") for at in (0.0, 0.1, 0.2, 5.0, 9.9, 10.0)]
    series = [Series(f"{LONG} {number}", [(0, number), (5, 10.0**number), (10, 1)]) for number in range(7)]
    drawn = [
        Chart("Lines", plots.lines(series, f"seconds since {LONG}", LONG, marks)),
        Chart("Powers", plots.lines(series, "s", "ms", marks, logarithmic=True)),
        Chart("Bars", plots.bars([(LONG, 123_456_789.0), ("b", 0.0)], "messages")),
        Chart("Time line", plots.time_line(marks, 10)),
        Chart("Nothing", plots.lines([], "", "")),
        Chart("A point", plots.lines([Series("one", [(3, 4)])], "seconds", "")),
    ]
    table = SummaryTable(LONG, ("name", LONG, "flag"), [(LONG * 3, 1234567.0, True), ("", 0.001, None)])
    return Summary("audit", f"{LONG} is lost", False, {LONG: LONG * 2}, [table], drawn)


@pytest.mark.proves("S7")
@pytest.mark.parametrize("make", [archive, simulate, rollup, everything_else])
def test_a_job(page: Page, tmp_path: Path, pictures: Path, make: Callable[[], Summary]) -> None:
    look_at(page, tmp_path / f"{make.__name__}.html", pictures, make())


@pytest.mark.proves("S6", "S7")
def test_an_audit(page: Page, tmp_path: Path, pictures: Path) -> None:
    summary = audit(tmp_path / "stores")
    assert {table.title for table in summary.tables} >= {"Promises", "Violations", "Cut off by force: 1", "Logs"}
    look_at(page, tmp_path / "audit.html", pictures, summary)


def look_at(page: Page, path: Path, pictures: Path, summary: Summary) -> None:
    path.write_text(render(f"PandoMQ: {summary.job}", [summary]))
    for looked in examine(page, path, pictures):
        assert looked["title"] == f"PandoMQ: {summary.job}"
        assert len(looked["drawings"]) == len(summary.plots) > 0


@pytest.mark.parametrize("deaf", [False, True])
def test_the_demo(page: Page, tmp_path: Path, pictures: Path, deaf: bool) -> None:
    path = tmp_path / f"demo-{'deaf' if deaf else 'whole'}.html"
    path.write_text(demo_page(story(), account(deaf=deaf), [archive()]))
    for looked in examine(page, path, pictures):
        assert len(looked["drawings"]) == 5
        assert len(looked["drawn"]) > 20
