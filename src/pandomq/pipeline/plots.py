"""Small plots as SVG, drawn without a library: lines over a common axis, bars, and marks on a time line.

Colours are the page's (`report.py`), so that a plot is readable on light and dark ground alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

WIDTH: Final = 720
HEIGHT: Final = 260
LEFT: Final = 72
RIGHT: Final = 16
TOP: Final = 12
BOTTOM: Final = 40
BAR_HEIGHT: Final = 22
BARS_LEFT: Final = 220
TICKS: Final = 5
COLOURS: Final = 6
"""Classes c0…c5 of the page."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    name: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Mark:
    """Something that happened."""

    at: float
    text: str


def lines(series: Sequence[Series], x_label: str, y_label: str, marks: Sequence[Mark] = ()) -> str:
    """One line for each series, from 0 upwards; marks are vertical."""
    points = [point for one in series for point in one.points]
    if not points:
        return _nothing()
    scale_x = _scale(min(x for x, _ in points), max(x for x, _ in points), LEFT, WIDTH - RIGHT)
    y_max = max(y for _, y in points) or 1.0
    scale_y = _scale(0.0, y_max, HEIGHT - BOTTOM, TOP)
    parts = [_axes(scale_x, scale_y, points, y_max, x_label, y_label)]
    for number, one in enumerate(series):
        path = " ".join(f"{scale_x(x):.1f},{scale_y(y):.1f}" for x, y in one.points)
        parts.append(f'<polyline class="line c{number % COLOURS}" points="{path}"/>')
        parts.append(_text(LEFT + 8 + 150 * number, TOP + 10, one.name, f"c{number % COLOURS}", "start"))
    for mark in marks:
        at = scale_x(mark.at)
        parts.append(f'<line class="mark" x1="{at:.1f}" y1="{TOP}" x2="{at:.1f}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(_text(at + 3, HEIGHT - BOTTOM - 6, mark.text, "note", "start"))
    return _svg(HEIGHT, parts)


def bars(rows: Sequence[tuple[str, float]], unit: str = "") -> str:
    """One bar a row, with its figure."""
    if not rows:
        return _nothing()
    most = max(value for _, value in rows) or 1.0
    scale = _scale(0.0, most, 0.0, WIDTH - BARS_LEFT - 110)
    parts = []
    for number, (name, value) in enumerate(rows):
        top = TOP + number * BAR_HEIGHT
        parts.append(_text(BARS_LEFT - 8, top + 14, name, "", "end"))
        parts.append(
            f'<rect class="bar c0" x="{BARS_LEFT}" y="{top}" width="{scale(value):.1f}" height="{BAR_HEIGHT - 6}"/>'
        )
        parts.append(_text(BARS_LEFT + scale(value) + 6, top + 14, f"{figure(value)} {unit}".strip(), "note", "start"))
    return _svg(2 * TOP + len(rows) * BAR_HEIGHT, parts)


def time_line(marks: Sequence[Mark], end: float) -> str:
    """What happened when, one below the other; times are seconds from 0 to `end`."""
    if not marks:
        return _nothing()
    scale = _scale(0.0, max(end, *(mark.at for mark in marks)), LEFT, WIDTH / 2)
    height = 2 * TOP + len(marks) * BAR_HEIGHT
    parts = [f'<line class="axis" x1="{LEFT}" y1="{TOP}" x2="{LEFT}" y2="{height - TOP}"/>']
    for number, mark in enumerate(sorted(marks, key=lambda one: one.at)):
        middle = TOP + number * BAR_HEIGHT + BAR_HEIGHT / 2
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{middle}" x2="{scale(mark.at):.1f}" y2="{middle}"/>')
        parts.append(f'<circle class="dot c0" cx="{scale(mark.at):.1f}" cy="{middle}" r="4"/>')
        parts.append(_text(LEFT - 8, middle + 4, f"{mark.at:.1f} s", "note", "end"))
        parts.append(_text(scale(mark.at) + 10, middle + 4, mark.text, "", "start"))
    return _svg(height, parts)


def figure(value: float) -> str:
    """Short, and exact enough for a plot."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


def ticks(lowest: float, highest: float, count: int = TICKS) -> list[float]:
    """Round numbers between the two, about so many."""
    span = highest - lowest
    if span <= 0:
        return [lowest]
    rough = span / count
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough)
    first = math.ceil(lowest / step)
    return [number * step for number in range(first, math.floor(highest / step + 1e-9) + 1)]


def _scale(lowest: float, highest: float, start: float, end: float) -> Callable[[float], float]:
    span = (highest - lowest) or 1.0
    return lambda value: start + (value - lowest) / span * (end - start)


def _axes(
    scale_x: Callable[[float], float],
    scale_y: Callable[[float], float],
    points: Sequence[Point],
    y_max: float,
    x_label: str,
    y_label: str,
) -> str:
    bottom = HEIGHT - BOTTOM
    parts = [f'<line class="axis" x1="{LEFT}" y1="{bottom}" x2="{WIDTH - RIGHT}" y2="{bottom}"/>']
    for value in ticks(0.0, y_max):
        at = scale_y(value)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{at:.1f}" x2="{WIDTH - RIGHT}" y2="{at:.1f}"/>')
        parts.append(_text(LEFT - 6, at + 4, figure(value), "note", "end"))
    for value in ticks(min(x for x, _ in points), max(x for x, _ in points)):
        parts.append(_text(scale_x(value), bottom + 16, figure(value), "note", "middle"))
    parts.append(_text((LEFT + WIDTH) / 2, HEIGHT - 6, x_label, "note", "middle"))
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text class="note" text-anchor="middle" transform="translate(14 {middle:.0f}) rotate(-90)">{escape(y_label)}'
        "</text>"
    )
    return "".join(parts)


def _text(x: float, y: float, text: str, kind: str, anchor: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _svg(height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">{"".join(parts)}</svg>'
    )


def _nothing() -> str:
    return _svg(2 * BAR_HEIGHT, [_text(WIDTH / 2, BAR_HEIGHT, "nothing to show", "note", "middle")])
