"""Slices of a replay hold every row that is meant once, in order, and are due when the pace says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pandomq.cli.failures import RequestRejected
from pandomq.cli.pipeline import lake_jobs
from pandomq.cli.pipeline.job_options import JobOptions
from pandomq.pipeline.lake import Lake, LakeFault, LakeFile
from pandomq.pipeline.replay import insist_on_known
from pandomq.pipeline.replay_plan import (
    SLICE_ROWS,
    Pace,
    ReplayPlan,
    Selection,
    draw_up,
    insist_on_same,
    load,
    plan_path,
    save,
)
from pandomq.spark.sink.write_names import query_name


def file(stream: str, first: int, last: int) -> LakeFile:
    """Its messages came one a millisecond."""
    path = f"vhost=%2F/stream={stream}/date=2026-11-16/{first}.parquet"
    return LakeFile(path, last - first + 1, 1000, first, last, first * 1000, last * 1000)


FILES = [file("a", 0, 99_999), file("a", 100_000, 449_999), file("b", 500, 999)]


def test_stream_after_stream() -> None:
    plan = draw_up("r", FILES, Selection(), Pace())
    ranges = [(one.stream, one.first, one.end, one.due_s) for one in plan.slices]
    assert ranges == [
        ("a", 0, SLICE_ROWS, 0.0),
        ("a", SLICE_ROWS, 2 * SLICE_ROWS, 0.0),
        ("a", 2 * SLICE_ROWS, 450_000, 0.0),
        ("b", 500, 1000, 0.0),
    ]


def test_at_a_rate() -> None:
    plan = draw_up("r", FILES, Selection("b"), Pace(rate=100))
    assert [(one.first, one.end, one.due_s) for one in plan.slices] == [
        (500, 700, 0.0),
        (700, 900, 2.0),
        (900, 1000, 4.0),
    ]


def test_as_it_came() -> None:
    plan = draw_up("r", FILES, Selection("b"), Pace(factor=0.1))
    assert [(one.stream, one.first, one.end) for one in plan.slices] == [
        (None, 500_000, 700_000),
        (None, 700_000, 900_000),
        (None, 900_000, 999_001),
    ]
    assert [one.due_s for one in plan.slices] == pytest.approx([0.0, 2.0, 4.0])


def test_bounds() -> None:
    plan = draw_up("r", FILES, Selection("a", first_offset=150_000, end_offset=150_010), Pace())
    assert [(one.first, one.end) for one in plan.slices] == [(150_000, 150_010)]
    assert [one.first_offset for one in plan.files] == [100_000]
    plan = draw_up("r", FILES, Selection("a", first_us=99_000_000, end_us=99_500_000), Pace())
    assert [one.first_offset for one in plan.files] == [0]


def test_a_selection_without_rows_has_no_slices() -> None:
    assert draw_up("r", FILES, Selection("c"), Pace()).slices == []
    assert draw_up("r", FILES, Selection("c"), Pace(factor=1)).slices == []


def test_too_slow_for_a_plan_and_a_name_that_is_none() -> None:
    with pytest.raises(LakeFault, match="too many"):
        draw_up("r", FILES, Selection("a"), Pace(rate=0.1))
    with pytest.raises(LakeFault, match="is not a valid name of a replay"):
        draw_up("../r", FILES, Selection("a"), Pace())


def test_a_plan_is_kept(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with lake.writing():
        plan = draw_up("r", FILES, Selection("a", 5, 9), Pace(rate=2.5))
        plan.done = 1
        save(lake, plan)
    assert load(lake, "r") == plan
    assert load(lake, "other") is None


# The same name a second time.

TARGET = {"url": "amqp://h", "exchange": "orders"}


def kept_plan(directory: Path) -> tuple[Lake, ReplayPlan]:
    """One that is half done."""
    lake = Lake(directory / "lake")
    plan = draw_up("t1", FILES, Selection("a", end_offset=400_000), Pace(), TARGET)
    plan.done, plan.rows = 1, SLICE_ROWS
    with lake.writing():
        save(lake, plan)
    return lake, plan


@pytest.mark.parametrize(
    ("selection", "pace", "target", "told"),
    [
        (Selection("b", end_offset=400_000), Pace(), TARGET, "--streams a, now b"),
        (Selection("a"), Pace(), TARGET, "--to-offset 400000, now not given"),
        (Selection("a", end_offset=400_000, where="x"), Pace(), TARGET, "--where not given, now x"),
        (Selection("a", end_offset=400_000), Pace(rate=5), TARGET, "--rate not given, now 5"),
        (Selection("a", end_offset=400_000), Pace(), {"exchange": "other"}, "--exchange orders, now other"),
        (Selection("a", end_offset=400_000), Pace(), {"stream": "s"}, "--to-stream not given, now s"),
    ],
)
def test_another_request_under_the_name_of_a_replay_is_refused(
    tmp_path: Path, selection: Selection, pace: Pace, target: dict[str, str], told: str
) -> None:
    lake, plan = kept_plan(tmp_path)
    insist_on_same(plan, Selection("a", end_offset=400_000), Pace(), {**TARGET, "url": "amqp://other-host"})
    with pytest.raises(LakeFault, match="replay t1 has other settings") as raised:
        insist_on_same(plan, selection, pace, target)
    assert told in str(raised.value)
    assert "1 of 2 slices (200,000 rows) are published" in str(raised.value)
    # So does the command, before it looks for brokers or starts Spark.
    to = {**target, "url": "amqp://127.0.0.1:1"}
    with pytest.raises(RequestRejected, match="replay t1 has other settings"):
        lake_jobs.run_replay(JobOptions(master="none"), lake.directory, to, "t1", selection, pace)


def test_names_of_writes_belong_to_one_replay() -> None:
    first, second = (draw_up("t1", FILES, Selection(), Pace(), TARGET) for _ in range(2))
    assert first.write_id != second.write_id


def test_brokers_without_a_record_of_the_published_batches_are_refused(tmp_path: Path) -> None:
    _, plan = kept_plan(tmp_path)
    known = {query_name(plan.write_id, "orders", ""): 0}
    insist_on_known(plan, TARGET, lambda query: known.get(query, -1))
    with pytest.raises(LakeFault, match="these brokers do not remember it"):
        insist_on_known(plan, TARGET, lambda _: -1)
    plan.done = plan.rows = 0
    insist_on_known(plan, TARGET, lambda _: -1)


def test_a_plan_of_version_0_1_goes_on(tmp_path: Path) -> None:
    """It had no target, and its writes had the name of the replay."""
    lake, plan = kept_plan(tmp_path)
    fields = json.loads(plan_path(lake, "t1").read_text())
    del fields["target"], fields["write_id"]
    plan_path(lake, "t1").write_text(json.dumps(fields))
    old = load(lake, "t1")
    assert old is not None and old.write_id == "t1" and old.slices == plan.slices
    insist_on_same(old, plan.selection, plan.pace, {"stream": "s"})
    insist_on_known(old, TARGET, {"t1": 0, query_name("t1", "orders", ""): -1}.__getitem__)
