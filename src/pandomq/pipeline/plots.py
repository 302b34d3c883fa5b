"""Small plots as SVG, drawn without a library: lines over a common axis, bars, lanes, and marks on a time line.

They fit any width: horizontal positions are in hundredths, text has a fixed size. Names of series, and the meanings of
marks, are flowing text beside the drawing. The page defines the colours (`report.py`), so that a plot is readable on a
light and on a dark background.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

HEIGHT: Final = 240
TOP: Final = 14
MARKED_TOP: Final = 46
"""With the numbers of marks above it."""
BOTTOM: Final = 24
BAR_ROW: Final = 34
LANE_ROW: Final = 36
LANE_HEIGHT: Final = 14
TICKS: Final = 5
COLOURS: Final = 6
"""Classes c0…c5 of the page."""
NEAR: Final = 4.0
"""Marks that are no farther apart than this, in hundredths, have their numbers one above the other."""
MARK_ROWS: Final = 3
LABEL_SHORT: Final = 8
"""A label with at most this many letters is at the axis, a longer one below."""
NAME_SHOWN: Final = 38
"""Letters of a bar's name; its figure needs room, too, also on a phone."""

Point = tuple[float, float]
Scale = Callable[[float], float]


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class TimelineMark:
    """An event on the time line."""

    at: float
    text: str


@dataclass(frozen=True)
class TimelineSpan:
    """The time range of a state."""

    begin: float
    end: float
    kind: str


@dataclass(frozen=True)
class TimelineLane:
    name: str
    spans: Sequence[TimelineSpan]


def lines(
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    marks: Sequence[TimelineMark] = (),
    *,
    logarithmic: bool = False,
) -> str:
    """One line for each series, from 0 upwards, or with a logarithmic axis from the lowest; marks are vertical."""
    points = [point for one in series for point in one.points]
    if not points:
        return _nothing()
    first, last = min(x for x, _ in points), max(x for x, _ in points)
    scale_x = _scale(first, last, 0.0, 100.0)
    shown = sorted((mark for mark in marks if first <= mark.at <= last), key=lambda mark: mark.at)
    shown_y, scale_y = _upright([y for _, y in points], MARKED_TOP if shown else TOP, logarithmic)
    short = x_label if len(x_label) <= LABEL_SHORT else ""
    parts = [_grid(shown_y, scale_y), _uprights(shown, scale_x, HEIGHT - BOTTOM)]
    parts += [_line(one.points, scale_x, scale_y, f"c{number % COLOURS}") for number, one in enumerate(series)]
    parts += [_figures(shown_y, scale_y), _feet(ticks(first, last), scale_x, short)]
    legend = _legend([(f"c{number % COLOURS}", one.name) for number, one in enumerate(series)])
    before = f'<p class="unit">{escape(y_label)}</p>{legend}'
    after = f'<p class="unit foot">{escape(x_label)}</p>' if not short and x_label else ""
    return _plot(HEIGHT, parts, f"{y_label} over {x_label}", before, after + _said(shown))


def bars(rows: Sequence[tuple[str, float]], unit: str = "") -> str:
    """One bar for each row, below its name and its figure."""
    if not rows:
        return _nothing()
    most = max(value for _, value in rows) or 1.0
    parts = []
    for number, (name, value) in enumerate(rows):
        top = number * BAR_ROW
        shown = name if len(name) <= NAME_SHOWN else f"{name[: NAME_SHOWN - 1]}…"
        parts.append(f"<g><title>{escape(name)}</title>{_text(0, top + 14, shown, '', 'start')}</g>")
        parts.append(_text(100, top + 14, f"{figure(value)} {unit}".strip(), "note", "end"))
        parts.append(f'<rect class="ground" x="0" y="{top + 20}" width="100%" height="8" rx="4"/>')
        width = max(0.0, value / most * 100)
        parts.append(f'<rect class="bar c0" x="0" y="{top + 20}" width="{width:.2f}%" height="8" rx="4"/>')
    return _plot(len(rows) * BAR_ROW, parts, ", ".join(f"{name}: {figure(value)}" for name, value in rows))


def lanes(rows: Sequence[TimelineLane], kinds: Sequence[str], end: float, marks: Sequence[TimelineMark] = ()) -> str:
    """The states of each lane, from 0 to `end` seconds: a kind has the colour of its place in `kinds`, others have
    none."""
    if not rows:
        return _nothing()
    scale = _scale(0.0, end, 0.0, 100.0)
    shown = sorted(marks, key=lambda mark: mark.at)
    first = MARKED_TOP if shown else TOP
    bottom = first + len(rows) * LANE_ROW
    parts = [_feet(ticks(0.0, end), scale, "seconds", bottom)]
    for number, lane in enumerate(rows):
        top = first + number * LANE_ROW
        parts.append(f'<rect class="ground" x="0" y="{top + 16}" width="100%" height="{LANE_HEIGHT}" rx="3"/>')
        for span in lane.spans:
            if span.kind in kinds:
                place = f'x="{scale(span.begin):.2f}%" y="{top + 16}" width="{scale(span.end - span.begin):.2f}%"'
                colour = kinds.index(span.kind) % COLOURS
                said = f"<title>{escape(f'{lane.name}: {span.kind}')}</title>"
                parts.append(f'<rect class="bar c{colour}" {place} height="{LANE_HEIGHT}" rx="3">{said}</rect>')
        parts.append(_text(0, top + 12, lane.name, "strong", "start"))
    parts.append(_uprights(shown, scale, bottom))
    seen = {span.kind for lane in rows for span in lane.spans}
    legend = _legend([(f"c{number % COLOURS}", kind) for number, kind in enumerate(kinds) if kind in seen])
    return _plot(bottom + BOTTOM, parts, "role of each broker over time", legend, _said(shown))


def time_line(marks: Sequence[TimelineMark], end: float) -> str:
    """Events in time; times are seconds from 0 to `end`."""
    if not marks:
        return _nothing()
    shown = sorted(marks, key=lambda mark: mark.at)
    last = max(end, shown[-1].at)
    scale = _scale(0.0, last, 0.0, 100.0)
    bottom = MARKED_TOP + 6
    return _plot(
        bottom + BOTTOM,
        [_feet(ticks(0.0, last), scale, "seconds", bottom), _uprights(shown, scale, bottom)],
        "events over time",
        after=_said(shown),
    )


def figure(value: float) -> str:
    """Short, and exact enough for a plot."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


def ticks(lowest: float, highest: float, count: int = TICKS) -> list[float]:
    """About `count` round numbers between the two."""
    span = highest - lowest
    if span <= 0:
        return [lowest]
    rough = span / count
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first = math.ceil(lowest / step)
    return [number * step for number in range(first, math.floor(highest / step + 1e-9) + 1)]


def powers(lowest: float, highest: float) -> list[float]:
    """Powers of ten, from the one at or below the lowest to the one at or above the highest."""
    first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
    return [10.0**power for power in range(first, max(last, first + 1) + 1)]


def _scale(lowest: float, highest: float, start: float, end: float) -> Scale:
    """A single value is in the middle."""
    span = highest - lowest
    return lambda value: start + ((value - lowest) / span if span else 0.5) * (end - start)


def _upright(values: Sequence[float], top: float, logarithmic: bool) -> tuple[list[float], Scale]:
    """The values that the grid shows, and the scale."""
    bottom = float(HEIGHT - BOTTOM)
    positive = [value for value in values if value > 0]
    if logarithmic and positive:
        shown = powers(min(positive), max(positive))
        scale = _scale(math.log10(shown[0]), math.log10(shown[-1]), bottom, top)
        return shown, lambda value: scale(math.log10(max(value, shown[0])))
    highest = max(*values, 0.0) or 1.0
    return ticks(0.0, highest), _scale(0.0, highest, bottom, top)


def _grid(shown: Sequence[float], scale: Scale) -> str:
    """Horizontal lines."""
    return "".join(f'<line class="grid" x1="0" y1="{at:.1f}" x2="100%" y2="{at:.1f}"/>' for at in map(scale, shown))


def _figures(shown: Sequence[float], scale: Scale) -> str:
    """The figures of the horizontal lines; drawn last, so that nothing hides them."""
    return "".join(_text(0, scale(value) - 4, figure(value), "note", "start") for value in shown)


def _feet(shown: Sequence[float], scale: Scale, label: str, bottom: float = HEIGHT - BOTTOM) -> str:
    """The axis below, with its figures; the last of them has the label."""
    parts = [f'<line class="axis" x1="0" y1="{bottom}" x2="100%" y2="{bottom}"/>']
    for value in shown:
        at = scale(value)
        words = f"{figure(value)} {label}".strip() if value == shown[-1] else figure(value)
        # On a phone a letter is two hundredths wide.
        anchor = "start" if at < len(words) else "end" if at > 100 - len(words) else "middle"
        parts.append(_text(at, bottom + 17, words, "note", anchor))
    return "".join(parts)


def _line(points: Sequence[Point], scale_x: Scale, scale_y: Scale, colour: str) -> str:
    """In a drawing of its own, which is stretched to the available width; a single point is a dot."""
    if len(points) == 1:
        [(x, y)] = points
        return f'<circle class="bar dot {colour}" cx="{scale_x(x):.2f}%" cy="{scale_y(y):.1f}" r="3.5"/>'
    path = " ".join(f"{scale_x(x):.2f},{scale_y(y):.1f}" for x, y in points)
    return (
        f'<svg class="stretched" width="100%" height="{HEIGHT}" viewBox="0 0 100 {HEIGHT}" preserveAspectRatio="none">'
        f'<polyline class="line {colour}" vector-effect="non-scaling-stroke" points="{path}"/></svg>'
    )


def _uprights(marks: Sequence[TimelineMark], scale: Scale, bottom: float) -> str:
    """Marks with their numbers; those of marks that are close together are one above the other."""
    parts = []
    row, before = 0, -math.inf
    for number, mark in enumerate(marks, start=1):
        at = scale(mark.at)
        row = (row + 1) % MARK_ROWS if at - before <= NEAR else 0
        before = at
        top = 8 + 14 * row
        parts.append(f'<line class="mark" x1="{at:.2f}%" y1="{top}" x2="{at:.2f}%" y2="{bottom}"/>')
        parts.append(f'<circle class="badge" cx="{at:.2f}%" cy="{top}" r="7"/>')
        parts.append(_text(at, top + 3.5, str(number), "number", "middle"))
    return "".join(parts)


def _legend(names: Sequence[tuple[str, str]]) -> str:
    items = "".join(f'<li><i class="swatch {colour}"></i>{escape(name)}</li>' for colour, name in names)
    return f'<ul class="legend">{items}</ul>' if items else ""


def _text(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    return f'<text class="{kind}" x="{x:.2f}%" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _said(marks: Sequence[TimelineMark]) -> str:
    """The meanings of the numbers."""
    items = "".join(
        f'<li><b class="badge">{number}</b> <time>{mark.at:.1f} s</time> {escape(mark.text)}</li>'
        for number, mark in enumerate(marks, start=1)
    )
    return f'<ol class="marks">{items}</ol>' if items else ""


def _plot(height: float, parts: Sequence[str], label: str, before: str = "", after: str = "") -> str:
    return (
        f'<div class="plot">{before}<svg xmlns="http://www.w3.org/2000/svg" width="100%" height="{height:.0f}" '
        f'role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>{after}</div>'
    )


def _nothing() -> str:
    return _plot(2 * BAR_ROW, [_text(50, BAR_ROW, "no data", "note", "middle")], "no data")
