"""What came of a job: facts, tables and plots, for a person, a program, and whoever reads the report later."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Table:
    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True)
class Plot:
    title: str
    svg: str
    """As `plots` draws it: a drawing in SVG, with what there is to read beside it."""


@dataclass(frozen=True)
class Summary:
    job: str
    verdict: str
    """One sentence."""
    good: bool = True
    """What was to be shown is so."""
    facts: dict[str, object] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    plots: Sequence[Plot] = ()

    def to_json(self) -> str:
        tables = {
            table.title: [dict(zip(table.headers, row, strict=True)) for row in table.rows] for table in self.tables
        }
        document = {
            "job": self.job,
            "good": self.good,
            "verdict": self.verdict,
            "facts": self.facts,
            "tables": tables,
            "plots": {plot.title: plot.svg for plot in self.plots},
        }
        return json.dumps(document, indent=2, default=str)

    @classmethod
    def from_json(cls, text: str) -> Summary:
        """What `to_json` wrote, for a page with several of them; a table without rows has lost its headers."""
        document = json.loads(text)
        tables = [
            Table(title, tuple(rows[0]) if rows else (), [tuple(row.values()) for row in rows])
            for title, rows in document["tables"].items()
        ]
        plots = [Plot(title, svg) for title, svg in document["plots"].items()]
        return cls(document["job"], document["verdict"], document["good"], document["facts"], tables, plots)
