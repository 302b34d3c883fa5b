"""Summaries as one HTML file without a script, network access, or a font of its own.

It is for light and for dark screens, for wide ones and for a phone: tables that are too wide scroll by themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from pandomq.pipeline.report_style import STYLE

if TYPE_CHECKING:
    from pandomq.pipeline.summary import Chart, Summary, SummaryTable

ROWS_MAX: Final = 1000
"""Rows of a table; further ones are counted."""
VERDICT: Final = "verdict"
"""Cells under this header have the colour of their value."""
_KINDS: Final = {"proven": "good", "proven in part": "open", "not judged": "open", "refuted": "bad"}
SHORT: Final = 22
"""Facts with at most this many letters are side by side, and such cells of tables are on one line."""


def render(title: str, summaries: Sequence[Summary], lead: str = "") -> str:
    """One page; several jobs follow each other, with links at the top."""
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


SHOWN: Final = {
    "Promises": "Guarantees",
    "promise": "guarantee",
    "Broken promises": "Violated guarantees",
    "broken promises": "violated guarantees",
}
"""Names of tables, columns and facts that a page shows in other words. The JSON keeps the names."""


def _name(name: str) -> str:
    return escape(SHOWN.get(name, name))


def _kind(summary: Summary) -> str:
    if not summary.good:
        return "bad"
    return "good" if summary.complete else "open"


def _section(number: int, summary: Summary) -> str:
    facts = "".join(_fact(name, _cell(value)) for name, value in summary.facts.items())
    return (
        f'<section id="part{number}"><h2>{escape(summary.job)}</h2><p class="verdict {_kind(summary)}">'
        f"{escape(summary.verdict)}</p>"
        + (f"<dl>{facts}</dl>" if facts else "")
        + "".join(map(_plot, summary.plots))
        + "".join(map(_table, summary.tables))
        + "</section>"
    )


def _fact(name: str, value: str) -> str:
    kind = ' class="long"' if len(value) > SHORT else ""
    return f"<div{kind}><dt>{_name(name)}</dt><dd>{escape(value)}</dd></div>"


def _plot(plot: Chart) -> str:
    return f"<figure><figcaption>{escape(plot.title)}</figcaption>{plot.svg}</figure>"


def _table(table: SummaryTable) -> str:
    shown = table.rows[:ROWS_MAX]
    head = "".join(
        _head(header, bool(shown) and all(_is_number(row[place]) for row in shown))
        for place, header in enumerate(table.headers)
    )
    rows = "".join(f"<tr>{''.join(map(_data, table.headers, row))}</tr>" for row in shown)
    more = len(table.rows) - ROWS_MAX
    rest = f"<p>and {more:,} more rows</p>" if more > 0 else ""
    note = f"<p>{escape(table.note)}</p>" if table.note else ""
    return (
        f'<h3>{_name(table.title)}</h3><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{rest}{note}"
    )


def _head(header: str, number: bool) -> str:
    return f'<th class="number">{_name(header)}</th>' if number else f"<th>{_name(header)}</th>"


def _data(header: str, value: object) -> str:
    text = _cell(value)
    kind = "number" if _is_number(value) else "short" if len(text) <= SHORT else ""
    if header == VERDICT:
        kind = f"{kind} {_KINDS.get(text, '')}".strip()
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
