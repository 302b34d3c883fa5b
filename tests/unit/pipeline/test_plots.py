"""Plots are well-formed SVG, show every figure they were given, and have round numbers at their axes."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pandomq.pipeline import plots
from pandomq.pipeline.plots import Mark, Series

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in drawn(svg).iter(f"{SVG}text")]


def test_lines() -> None:
    svg = plots.lines(
        [Series("root <1>", [(0, 10), (1, 20), (2, 0)]), Series("backup", [(0, 5), (2, 5)])],
        "seconds",
        "messages/s",
        [Mark(1, "killed & gone")],
    )
    assert len(list(drawn(svg).iter(f"{SVG}polyline"))) == 2
    assert {"root <1>", "backup", "seconds", "messages/s", "killed & gone"} <= set(texts(svg))


def test_the_largest_value_is_at_the_top_and_zero_at_the_bottom() -> None:
    line = drawn(plots.lines([Series("", [(0, 0), (1, 8)])], "", "")).find(f"{SVG}polyline")
    assert line is not None
    points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
    assert points == [(plots.LEFT, plots.HEIGHT - plots.BOTTOM), (plots.WIDTH - plots.RIGHT, plots.TOP)]


def test_bars() -> None:
    svg = plots.bars([("a", 1.0), ("b", 4.0), ("c", 0.0)], "messages")
    widths = [float(bar.get("width", "")) for bar in drawn(svg).iter(f"{SVG}rect")]
    assert widths[1] == pytest.approx(4 * widths[0], rel=0.01)
    assert widths[2] == 0
    assert "4 messages" in texts(svg)


def test_a_time_line_is_in_order() -> None:
    found = texts(plots.time_line([Mark(7.5, "second"), Mark(2, "first")], 10))
    assert [text for text in found if text in ("first", "second")] == ["first", "second"]


@pytest.mark.parametrize("svg", [plots.lines([], "", ""), plots.bars([]), plots.time_line([], 1)])
def test_nothing_is_said_to_be_nothing(svg: str) -> None:
    assert texts(svg) == ["nothing to show"]


@pytest.mark.parametrize(
    ("lowest", "highest", "expected"),
    [(0, 10, [0, 2, 4, 6, 8, 10]), (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (3, 3, [3]), (95, 130, [100, 110, 120, 130])],
)
def test_round_numbers(lowest: float, highest: float, expected: list[float]) -> None:
    assert plots.ticks(lowest, highest) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1234.5, "1234"), (12345, "12.35k"), (2_500_000, "2.5M"), (3e9, "3G"), (0.25, "0.25")]
)
def test_figures(value: float, text: str) -> None:
    assert plots.figure(value) == text
