"""The menu of the site is made from docs/index.md, and has every page."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = ROOT / "docs"
SITE: Final[dict[str, Any]] = runpy.run_path(str(DOCS / "site" / "conf.py"))


def test_every_page_is_in_the_menu_once() -> None:
    named = [page for pages in SITE["menu"]((DOCS / "index.md").read_text()).values() for page in pages]
    paths = [(DOCS / f"{page}.md").resolve().relative_to(ROOT) for page in named]
    assert len(set(paths)) == len(paths)
    pages = {path.relative_to(ROOT) for pattern in SITE["include_patterns"] for path in ROOT.glob(pattern)}
    assert set(paths) == pages - {Path(f"{SITE['root_doc']}.md")}


def test_a_page_of_two_sections_is_in_the_first() -> None:
    index = "[A](../A.md)\n\n## One\n\n| [b](b.md) | [c](c.md#d) |\n\n## Two\n\n[b](b.md), [c](c.md)\n"
    assert SITE["menu"](index) == {"Start": ["../A"], "One": ["b"], "Two": ["c"]}
