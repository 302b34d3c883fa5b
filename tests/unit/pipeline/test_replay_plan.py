"""Slices of a replay hold every row that is meant once, in order, and are due when the pace says."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandomq.pipeline.lake import Lake, LakeFault, LakeFile
from pandomq.pipeline.replay_plan import SLICE_ROWS, Pace, Selection, draw_up, load, save


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


def test_nothing_is_meant() -> None:
    assert draw_up("r", FILES, Selection("c"), Pace()).slices == []
    assert draw_up("r", FILES, Selection("c"), Pace(factor=1)).slices == []


def test_too_slow_for_a_plan_and_a_name_that_is_none() -> None:
    with pytest.raises(LakeFault, match="too many"):
        draw_up("r", FILES, Selection("a"), Pace(rate=0.1))
    with pytest.raises(LakeFault, match="cannot name a replay"):
        draw_up("../r", FILES, Selection("a"), Pace())


def test_a_plan_is_kept(tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    with lake.writing():
        plan = draw_up("r", FILES, Selection("a", 5, 9), Pace(rate=2.5))
        plan.done = 1
        save(lake, plan)
    assert load(lake, "r") == plan
    assert load(lake, "other") is None
