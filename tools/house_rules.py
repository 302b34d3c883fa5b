"""Checks the rules of the house that no linter knows: how long a file may be, and what a module may not be called.

Prints each breach and exits with 1 if there is any.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = ("src", "tests", "tools")
SUFFIXES = {".py", ".pyi", ".pyx", ".pxi", ".pxd"}
LINES_MAX = 400
# A module with such a name has no subject, and becomes the place where everything ends up.
VAGUE = re.compile(r"^(.*_)?(utils?|helpers?|managers?|misc|common)$")
POSTPONED = re.compile(r"#\s.*\b(TODO|FIXME|XXX)\b")


def breaches(path: Path, text: str) -> Iterator[str]:
    lines = text.splitlines()
    if len(lines) > LINES_MAX:
        yield f"{path}: {len(lines)} lines, at most {LINES_MAX}: look for the second noun"
    if VAGUE.match(path.stem):
        yield f"{path}: the name says nothing about what the module holds"
    for number, line in enumerate(lines, start=1):
        if POSTPONED.search(line):
            yield f"{path}:{number}: work left for later belongs in the tracker"


def main() -> int:
    found = [
        breach
        for source in SOURCES
        for path in sorted((ROOT / source).rglob("*"))
        if path.suffix in SUFFIXES and "node_modules" not in path.parts
        for breach in breaches(path.relative_to(ROOT), path.read_text())
    ]
    print("\n".join(found) if found else "house rules kept")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
