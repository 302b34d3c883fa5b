"""Builds the documentation as a site: `make docs` writes it to build/docs.

The sources are the Markdown pages, as people read them in the repository: the pages hold no directives of Sphinx. The
menu that Sphinx needs is made here from the sections of docs/index.md, so that the index and the menu agree.
`make docs` treats a link to a missing page or heading as an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "PandoMQ"
author = "The PandoMQ developers"
project_copyright = author
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/adr/*.md"]
myst_heading_anchors = 4
html_theme = "furo"
html_title = "PandoMQ"
html_copy_source = False
# Diagrams in Mermaid's language stay text, and some Python examples leave parts out.
suppress_warnings = ["misc.highlighting_failure"]

FIRST_PART: Final = "Start"
"""The pages that the index names before its first section."""
SECTION: Final = re.compile(r"^## (.+)$", re.MULTILINE)
PAGE: Final = re.compile(r"\]\(([\w./-]+)\.md\)")
"""A link to a whole page. A link to a heading does not count."""


def menu(index: str) -> dict[str, list[str]]:
    """The pages of each section of the index, in its order. A page that two sections name is in the first one."""
    before, *rest = SECTION.split(index)
    parts = {FIRST_PART: before, **dict(zip(rest[::2], rest[1::2], strict=True))}
    seen: set[str] = set()
    made: dict[str, list[str]] = {}
    for name, text in parts.items():
        made[name] = [page for page in dict.fromkeys(PAGE.findall(text)) if page not in seen]
        seen.update(made[name])
    return made


def add_menu(app: Sphinx, page: str, source: list[str]) -> None:
    if page == root_doc:
        parts = [
            "\n".join((f"```{{toctree}}\n:hidden:\n:caption: {name}\n", *pages, "```"))
            for name, pages in menu(source[0]).items()
        ]
        source[0] += "\n\n" + "\n\n".join(parts) + "\n"


def setup(app: Sphinx) -> None:
    app.connect("source-read", add_menu)
