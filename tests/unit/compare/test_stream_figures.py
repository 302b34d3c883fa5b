"""The page about streams has the figures that were measured."""

from __future__ import annotations

import json
from pathlib import Path

from tools.compare.streams import table

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_has_the_figures_of_the_run() -> None:
    found = json.loads((DOCS / "streams.json").read_text())
    assert len(found) == 4
    assert table(found) in (DOCS / "streams.md").read_text()
