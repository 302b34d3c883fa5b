"""Plots are well-formed SVG, show every figure they were given, and have round numbers at their axes."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pandomq.pipeline import plots
from pandomq.pipeline.plots import Series, TimelineLane, TimelineMark, TimelineSpan

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in drawn(svg).iter(f"{SVG}text")]


def beside(svg: str) -> list[str]:
    """Returns the text next to a drawing."""
    return ["".join(element.itertext()) for tag in ("p", "li") for element in drawn(svg).iter(tag)]


def test_lines() -> None:
    svg = plots.lines(
        [Series("root <1>", [(0, 10), (1, 20), (2, 0)]), Series("backup", [(0, 5), (2, 5)])],
        "seconds",
        "messages/s",
        [TimelineMark(1, "killed & gone")],
    )
    assert len(list(drawn(svg).iter(f"{SVG}polyline"))) == 2
    assert beside(svg) == ["messages/s", "root <1>", "backup", "1 1.0 s killed & gone"]
    assert {"1", "2 seconds"} <= set(texts(svg))


def test_a_long_label_stands_below_the_axis() -> None:
    svg = plots.lines([Series("a", [(0, 1), (10, 1)])], "seconds since midnight", "rows")
    assert beside(svg) == ["rows", "seconds since midnight", "a"]
    assert "10" in texts(svg)


def test_a_bar_with_a_long_name_shows_its_beginning() -> None:
    svg = plots.bars([("x" * 200, 1.0)])
    assert max(map(len, texts(svg))) == plots.NAME_SHOWN
    assert [title.text for title in drawn(svg).iter(f"{SVG}title")] == ["x" * 200]


def test_the_largest_value_is_at_the_top_and_zero_at_the_bottom() -> None:
    line = drawn(plots.lines([Series("", [(0, 0), (1, 8)])], "", "")).find(f".//{SVG}polyline")
    assert line is not None
    points = [tuple(map(float, point.split(","))) for point in line.get("points", "").split()]
    assert points == [(0, plots.HEIGHT - plots.BOTTOM), (100, plots.TOP)]


def test_a_logarithmic_axis_shows_powers_of_ten_and_other_values_at_its_foot() -> None:
    svg = plots.lines([Series("", [(0, 0), (1, 3), (2, 10), (3, 2000)])], "", "", logarithmic=True)
    assert {"1", "10", "100", "1000", "10k"} <= set(texts(svg))
    line = drawn(svg).find(f".//{SVG}polyline")
    assert line is not None
    heights = [float(point.split(",")[1]) for point in line.get("points", "").split()]
    foot, top = plots.HEIGHT - plots.BOTTOM, plots.TOP
    assert heights[0] == foot
    assert heights[2] == pytest.approx(foot - (foot - top) / 4, abs=0.1)


def test_marks_outside_of_the_lines_are_left_out() -> None:
    svg = plots.lines([Series("", [(5, 1), (6, 1)])], "", "", [TimelineMark(1, "before"), TimelineMark(5.5, "within")])
    assert [words for words in beside(svg) if "within" in words or "before" in words] == ["1 5.5 s within"]


def test_marks_that_are_near_each_other_have_their_numbers_one_above_the_other() -> None:
    svg = plots.time_line([TimelineMark(1, "a"), TimelineMark(1.1, "b"), TimelineMark(50, "c")], 100)
    heights = [circle.get("cy") for circle in drawn(svg).iter(f"{SVG}circle")]
    assert heights[0] != heights[1] and heights[0] == heights[2]


def test_bars() -> None:
    svg = plots.bars([("a", 1.0), ("b", 4.0), ("c", 0.0)], "messages")
    widths = [bar.get("width", "") for bar in drawn(svg).iter(f"{SVG}rect") if "bar" in bar.get("class", "")]
    assert widths == ["25.00%", "100.00%", "0.00%"]
    assert "4 messages" in texts(svg)


def test_a_time_line_is_in_order() -> None:
    assert beside(plots.time_line([TimelineMark(7.5, "second"), TimelineMark(2, "first")], 10)) == [
        "1 2.0 s first",
        "2 7.5 s second",
    ]


def test_lanes_have_the_colour_of_their_kind_and_unknown_kinds_are_left_out() -> None:
    rows = [
        TimelineLane(
            "n1 & co", [TimelineSpan(0, 4, "root"), TimelineSpan(4, 6, "dead"), TimelineSpan(6, 10, "backup")]
        ),
        TimelineLane("n2", [TimelineSpan(4, 10, "root")]),
    ]
    svg = plots.lanes(rows, ["root", "backup", "secondary"], 10, [TimelineMark(4, "killed")])
    found = [
        (bar.get("class"), bar.get("x"), bar.get("width"))
        for bar in drawn(svg).iter(f"{SVG}rect")
        if "bar" in bar.get("class", "")
    ]
    assert found == [
        ("bar c0", "0.00%", "40.00%"),
        ("bar c1", "60.00%", "40.00%"),
        ("bar c0", "40.00%", "60.00%"),
    ]
    assert {"n1 & co", "n2"} <= set(texts(svg))
    assert beside(svg) == ["root", "backup", "1 4.0 s killed"]


@pytest.mark.parametrize(
    "svg", [plots.lines([], "", ""), plots.bars([]), plots.time_line([], 1), plots.lanes([], [], 1)]
)
def test_an_empty_plot_states_that_there_are_no_data(svg: str) -> None:
    assert texts(svg) == ["no data"]


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
