"""Pages of the documentation with parts that tools write: each part stands between two comments."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def replace_between(text: str, begin: str, end: str, part: str) -> str:
    """Returns the text with another part between these comments."""
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}{part}{end}{after}"


def write_or_check(path: Path, page: Callable[[str], str]) -> int:
    """Writes the current page, or with `--check` returns 1 if the file has another one."""
    text = path.read_text()
    if "--check" in sys.argv:
        return int(page(text) != text)
    path.write_text(page(text))
    return 0
