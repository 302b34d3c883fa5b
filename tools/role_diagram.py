"""Writes the diagram of roles in docs/replication.md, from the table of transitions that the replica itself obeys.

With --check nothing is written, and the exit code says whether the page is up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pandomq.replica.roles.transitions import TRANSITIONS, Role

PAGE = Path(__file__).parent.parent / "docs" / "replication.md"
BEGIN = "<!-- roles: drawn from src/pandomq/replica/roles/transitions.py by tools/role_diagram.py -->\n"
END = "<!-- end of roles -->\n"


def diagram() -> str:
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {Role.RECOVERING.value}"]
    lines += [f"    {old.value} --> {new.value}" for old, news in TRANSITIONS.items() for new in news]
    lines += ["```", "", "| from | to | when |", "| --- | --- | --- |"]
    for old, news in TRANSITIONS.items():
        lines += [f"| {old.value} | {new.value} | {when} |" for new, when in news.items()]
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with the diagram as the table has it."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{diagram()}{END}{after}"


def main() -> int:
    text = PAGE.read_text()
    if "--check" in sys.argv:
        return int(page(text) != text)
    PAGE.write_text(page(text))
    return 0


if __name__ == "__main__":
    sys.exit(main())
