"""The result of a job: facts, tables and plots, for people and programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SummaryTable:
    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""
    """A footnote, for a person alone: it is not in the JSON."""


@dataclass(frozen=True)
class Chart:
    title: str
    svg: str
    """From `plots`: a drawing in SVG, with its text beside it."""


@dataclass(frozen=True)
class Summary:
    job: str
    verdict: str
    """One sentence."""
    good: bool = True
    """No problem was found."""
    facts: dict[str, object] = field(default_factory=dict)
    tables: Sequence[SummaryTable] = ()
    plots: Sequence[Chart] = ()
    complete: bool = True
    """Everything was done and shown; otherwise the verdict names what is missing."""

    def to_json(self) -> str:
        tables = {
            table.title: [dict(zip(table.headers, row, strict=True)) for row in table.rows] for table in self.tables
        }
        document = {
            "job": self.job,
            "good": self.good,
            "complete": self.complete,
            "verdict": self.verdict,
            "facts": self.facts,
            "tables": tables,
            "plots": {plot.title: plot.svg for plot in self.plots},
        }
        return json.dumps(document, indent=2, default=str)

    @classmethod
    def from_json(cls, text: str) -> Summary:
        """Reads the output of `to_json`, for a page with several summaries; a table without rows has lost its
        headers."""
        document = json.loads(text)
        tables = [
            SummaryTable(title, tuple(rows[0]) if rows else (), [tuple(row.values()) for row in rows])
            for title, rows in document["tables"].items()
        ]
        plots = [Chart(title, svg) for title, svg in document["plots"].items()]
        complete = document.get("complete", True)
        return cls(document["job"], document["verdict"], document["good"], document["facts"], tables, plots, complete)
