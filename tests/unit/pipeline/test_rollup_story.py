"""The summary of windows: totals are those of the events, whoever matters most is there, and plots show all windows."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from pandomq.pipeline.report import render
from pandomq.pipeline.rollup.batch_filter import RollupCounts, Story
from pandomq.pipeline.rollup.gathering import Gatherer
from pandomq.pipeline.rollup.newest import TIME, Newest, leaders, led, spread
from pandomq.pipeline.rollup.results import results_of
from pandomq.pipeline.rollup.story import summarize
from pandomq.pipeline.rollup.views import VhostStory, told
from pandomq.trace_form import Events
from tests.support.trace_windows import windows
from tests.support.traces import BEGIN_US, batches

SECOND_US = 1_000_000


def sums_of(some: list[Events]) -> pa.Table:
    gatherer = Gatherer(0)
    for batch in some:
        gatherer.add(batch)
    return gatherer.sums()


def newest_of(some: list[Events], length_s: int = 10) -> Newest:
    """As executors make it."""
    sums = sums_of(some)
    sums = sums.filter(pa.array([found == length_s for found in sums["window_s"].to_pylist()]))
    rows: list[dict[str, Any]] = [row for batch in led(spread(sums.to_batches())) for row in batch.to_pylist()]
    for row in rows:
        row["start_us"] = round(row["time"].timestamp() * SECOND_US)
    series = sorted((row for row in rows if row["subject"] == TIME), key=lambda row: int(row["start_us"]))
    end_us = series[-1]["start_us"] + length_s * SECOND_US if series else BEGIN_US
    return Newest(BEGIN_US, end_us, [row for row in rows if row["subject"] != TIME], series)


def story_of(some: list[Events], vhost: str = "/", stories: tuple[Story, ...] = ()) -> VhostStory:
    return VhostStory(
        vhost, newest_of(some), list(stories), RollupCounts(events=5, late={10: 3}), BEGIN_US + 30 * SECOND_US
    )


def rows_of(tables: dict[str, Any], title: str) -> list[dict[str, Any]]:
    table = tables[title]
    return [dict(zip(table.headers, row, strict=True)) for row in table.rows]


def test_tables_have_the_totals_of_the_events() -> None:
    some = batches(4, messages=800, spacing_us=100_000)
    expected = {key[2:]: row for key, row in windows(some, [10**9]).items()}
    tables = {table.title: table for table in summarize([story_of(some)], "10s", {}, 1).tables}
    for row in rows_of(tables, "Queues"):
        published, acked = (
            expected["queue", row["queue"], "", "published"],
            expected["queue", row["queue"], "", "acked"],
        )
        assert (row["published"], row["bytes"], row["acked"]) == (published.events, published.bytes, acked.events)
        assert row["ack p99 ms"] * 1000 == pytest.approx(acked.percentile(0.99), rel=0.021)
    assert sum(row["unroutable"] for row in rows_of(tables, "Exchanges")) == sum(
        row.events for key, row in expected.items() if (key[0], key[3]) == ("broker", "unroutable")
    )
    for row in rows_of(tables, "Dead letters"):
        reason = row["reason"].replace("_", "-")
        assert row["messages"] == expected["queue", row["queue"], "", f"dead-lettered: {reason}"].events
    keys = rows_of(tables, "Hot keys")
    counts = {key[1:3]: row.events for key, row in expected.items() if (key[0], key[3]) == ("key", "published")}
    assert keys[0]["published"] == max(counts.values())
    slow = rows_of(tables, "Slowest consumers")
    held = [row["held p99 ms"] for row in slow]
    assert held == sorted(held, reverse=True) and len(held) > 3
    for row in slow:
        truth = expected["consumer", row["consumer"], row["queue"], "held"]
        assert row["held p50 ms"] * 1000 == pytest.approx(truth.percentile(0.5), rel=0.021)
    closed = [row["closed"] for row in rows_of(tables, "The last windows of 10s")]
    assert True in closed and closed == sorted(closed, reverse=True)


def test_the_report_of_two_vhosts() -> None:
    elected = Story(BEGIN_US + SECOND_US, "b1", '{"event":"elected","root":"<b1>"}')
    stories = [story_of(batches(seed, 200, 200_000), f"v{seed}", (elected,)) for seed in (1, 2)]
    summary = summarize(stories, "10s", {}, 77)
    assert summary.verdict == "77 events were added to the rollup"
    assert (summary.facts["events in all"], summary.facts["late for 10s"], summary.facts["late for 1h"]) == (10, 6, 0)
    page = ElementTree.fromstring(render("rollup", [summary]).removeprefix("<!DOCTYPE html>\n"))
    lines = [element for element in page.iter() if element.tag.endswith("}polyline")]
    assert len(lines) == 2 * 7 and all(line.get("points") for line in lines)
    # Both vhosts tell of it.
    table = next(table for table in summary.tables if table.title == "What happened to the cluster")
    assert [row[1:] for row in table.rows] == [("b1", "elected root=<b1>")]


def test_only_the_busiest_subjects_are_shown() -> None:
    table = results_of(sums_of(batches(6, 400, 1000)))
    for count in (1, 3):
        kept = leaders(table, count)
        names = {(row["subject"], row["name"], row["within"]) for row in kept.to_pylist()}
        for subject in ("queue", "key", "consumer"):
            assert sum(name[0] == subject for name in names) == count
    assert len(leaders(table.slice(0, 0))) == 0


def test_a_summary_without_events_states_that_there_are_none() -> None:
    summary = summarize([VhostStory("/", Newest(0, 0, [], []), [], RollupCounts(), 0)], "10s", {}, 0)
    assert summary.verdict == "there were no new events" and not summary.tables and not summary.plots


@pytest.mark.parametrize(
    ("text", "words"),
    [('{"event":"in_sync","members":["b1"]}', "in-sync members=['b1']"), ("no json", "no json"), ("[1]", "[1]")],
)
def test_events_of_the_cluster_are_described(text: str, words: str) -> None:
    assert told(text) == words
