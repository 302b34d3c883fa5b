"""A summary as one HTML file that needs nothing else: no script, no network, no font of its own."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from pandomq.pipeline.plots import COLOURS

if TYPE_CHECKING:
    from pandomq.pipeline.summary import Plot, Summary, Table

ROWS_MAX: Final = 1000
"""Of a table; how many more there are is said."""

_STYLE: Final = """
:root {
  color-scheme: light dark;
  --ink: #1c2330; --paper: #fff; --soft: #667; --rule: #d8dce4; --good: #1a7f4b; --bad: #b3261e;
  --c0: #2563b0; --c1: #c2571a; --c2: #2f855a; --c3: #8a3fa0; --c4: #a07a00; --c5: #607080;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e6e9ef; --paper: #14181f; --soft: #9aa3b2; --rule: #333b48; --good: #58c48b; --bad: #ff8a80;
    --c0: #7fb2f0; --c1: #f0a070; --c2: #7fd0a5; --c3: #d39ae4; --c4: #e0c060; --c5: #a8b4c4;
  }
}
body {
  font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
}
h1 { font-size: 1.6rem; }
h2 { font-size: 1.15rem; margin-top: 2rem; }
.verdict { font-size: 1.1rem; border-left: 4px solid var(--good); padding-left: .8rem; }
.verdict.bad { border-color: var(--bad); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { padding: .25rem .8rem .25rem 0; text-align: left; border-bottom: 1px solid var(--rule); }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
dl { display: grid; grid-template-columns: max-content auto; gap: .2rem 1.2rem; }
dt { color: var(--soft); }
dd { margin: 0; }
figure { margin: 1rem 0; }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); }
svg .note { fill: var(--soft); }
svg .axis, svg .grid { stroke: var(--rule); }
svg .mark { stroke: var(--bad); stroke-dasharray: 3 3; }
svg .line { fill: none; stroke-width: 1.8; }
""" + "".join(
    f"svg .line.c{number} {{ stroke: var(--c{number}); }}\n"
    f"svg .bar.c{number}, svg .dot.c{number}, svg text.c{number} {{ fill: var(--c{number}); }}\n"
    for number in range(COLOURS)
)


def render(title: str, summaries: Sequence[Summary]) -> str:
    """One page; of several jobs one after the other."""
    body = "".join(map(_section, summaries))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def _section(summary: Summary) -> str:
    kind = "verdict" if summary.good else "verdict bad"
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(_cell(value))}</dd>" for name, value in summary.facts.items())
    return (
        f'<h2>{escape(summary.job)}</h2><p class="{kind}">{escape(summary.verdict)}</p>'
        + (f"<dl>{facts}</dl>" if facts else "")
        + "".join(map(_plot, summary.plots))
        + "".join(map(_table, summary.tables))
    )


def _plot(plot: Plot) -> str:
    return f"<figure><figcaption>{escape(plot.title)}</figcaption>{plot.svg}</figure>"


def _table(table: Table) -> str:
    head = "".join(f"<th>{escape(header)}</th>" for header in table.headers)
    rows = "".join(f"<tr>{''.join(map(_data, row))}</tr>" for row in table.rows[:ROWS_MAX])
    more = len(table.rows) - ROWS_MAX
    rest = f"<p>and {more:,} more</p>" if more > 0 else ""
    return (
        f'<h3>{escape(table.title)}</h3><div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>{rest}"
    )


def _data(value: object) -> str:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f'<td class="number">{escape(_cell(value))}</td>' if number else f"<td>{escape(_cell(value))}</td>"


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
