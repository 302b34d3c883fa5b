"""Summaries as one HTML file that needs nothing else: no script, no network, no font of its own.

It is for light and for dark screens, for wide ones and for a phone: tables that are too wide scroll by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from pandomq.pipeline.report_style import STYLE

if TYPE_CHECKING:
    from pandomq.pipeline.summary import Plot, Summary, Table

ROWS_MAX: Final = 1000
"""Of a table; how many more there are is said."""
SHORT: Final = 22
"""Facts of so many letters stand side by side, and cells of tables in one line."""


def render(title: str, summaries: Sequence[Summary], lead: str = "") -> str:
    """One page; of several jobs one after the other, with a line at the top that leads to each."""
    body = "".join(_section(number, summary) for number, summary in enumerate(summaries))
    said = f'<p class="lead">{escape(lead)}</p>' if lead else ""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        '<meta name="color-scheme" content="light dark"/>'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body><header><h1>{escape(title)}</h1>{said}{_ways(summaries)}</header><main>{body}</main></body></html>\n"
    )


def _ways(summaries: Sequence[Summary]) -> str:
    if len(summaries) < 2:
        return ""
    ways = "".join(
        f'<a class="{_kind(summary)}" href="#part{number}">{escape(summary.job)}</a>'
        for number, summary in enumerate(summaries)
    )
    return f"<nav>{ways}</nav>"


def _kind(summary: Summary) -> str:
    return "good" if summary.good else "bad"


def _section(number: int, summary: Summary) -> str:
    kind = "verdict" if summary.good else "verdict bad"
    facts = "".join(_fact(name, _cell(value)) for name, value in summary.facts.items())
    return (
        f'<section id="part{number}"><h2>{escape(summary.job)}</h2><p class="{kind}">{escape(summary.verdict)}</p>'
        + (f"<dl>{facts}</dl>" if facts else "")
        + "".join(map(_plot, summary.plots))
        + "".join(map(_table, summary.tables))
        + "</section>"
    )


def _fact(name: str, value: str) -> str:
    kind = ' class="long"' if len(value) > SHORT else ""
    return f"<div{kind}><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"


def _plot(plot: Plot) -> str:
    return f"<figure><figcaption>{escape(plot.title)}</figcaption>{plot.svg}</figure>"


def _table(table: Table) -> str:
    shown = table.rows[:ROWS_MAX]
    head = "".join(
        _head(header, bool(shown) and all(_is_number(row[place]) for row in shown))
        for place, header in enumerate(table.headers)
    )
    rows = "".join(f"<tr>{''.join(map(_data, row))}</tr>" for row in shown)
    more = len(table.rows) - ROWS_MAX
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return (
        f'<h3>{escape(table.title)}</h3><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{rest}"
    )


def _head(header: str, number: bool) -> str:
    return f'<th class="number">{escape(header)}</th>' if number else f"<th>{escape(header)}</th>"


def _data(value: object) -> str:
    text = _cell(value)
    kind = "number" if _is_number(value) else "short" if len(text) <= SHORT else ""
    return f'<td class="{kind}">{escape(text)}</td>' if kind else f"<td>{escape(text)}</td>"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
        case _:
            return str(value)
