"""Writes the tables of keys in docs/configuration.md, from the sections that the broker itself reads.

With --check nothing is written, and the exit code says whether the page is up to date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pandomq.cli.config.keys import Key, all_keys
from tools.generated_page import write_or_check

PAGE = Path(__file__).parent.parent / "docs" / "configuration.md"
TABLE = re.compile(
    r"(?P<begin><!-- keys of \[(?P<section>[\w.]+)\]: .*? -->\n).*?(?P<end><!-- end of keys -->\n)", re.DOTALL
)
HEAD = "| key | environment | default | option | meaning |\n| --- | --- | --- | --- | --- |\n"


def row(key: Key) -> str:
    cells = [f"`{key.name}`", f"`{key.variable}`", f"`{key.default_text}`" if key.default_text else "—"]
    cells += [f"`{key.option}`" if key.option else "", key.description.replace("|", "\\|")]
    return f"| {' | '.join(cells)} |\n".replace("|  |", "| |")


def table(section: str) -> str:
    return HEAD + "".join(row(key) for key in all_keys().values() if key.section == section)


def page(text: str) -> str:
    """Returns the page with the current keys. Raises ValueError if it has no table for one of the sections."""
    missing = {key.section for key in all_keys().values()} - {found["section"] for found in TABLE.finditer(text)}
    if missing:
        raise ValueError(f"{PAGE.name} has no table for {', '.join(sorted(missing))}")
    return TABLE.sub(lambda found: found["begin"] + table(found["section"]) + found["end"], text)


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page))
