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
        """Facts and tables; plots are drawn from those."""
        tables = {
            table.title: [dict(zip(table.headers, row, strict=True)) for row in table.rows] for table in self.tables
        }
        document = {"job": self.job, "good": self.good, "verdict": self.verdict, "facts": self.facts, "tables": tables}
        return json.dumps(document, indent=2, default=str)
