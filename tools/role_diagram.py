"""Writes the diagrams of states in docs/replication.md, from the tables of transitions that the code itself obeys.

With --check nothing is written, and the exit code says whether the page is up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TypeVar

from pandomq.node import broker_state
from pandomq.replica.roles import transitions
from tools.generated_page import replace_between, write_or_check

State = TypeVar("State", bound=Enum)

PAGE = Path(__file__).parent.parent / "docs" / "replication.md"


def diagram(table: Mapping[State, Mapping[State, str]]) -> str:
    """The diagram and the table; the first state of the table is the first state of all."""
    first = next(iter(table))
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {_word(first)}"]
    lines += [f"    {_word(old)} --> {_word(new)}" for old, news in table.items() for new in news]
    lines += ["```", "", "| from | to | when |", "| --- | --- | --- |"]
    for old, news in table.items():
        lines += [f"| {old.value} | {new.value} | {when} |" for new, when in news.items()]
    return "\n".join(lines) + "\n"


def _word(state: Enum) -> str:
    return str(state.value).replace(" ", "_")


DIAGRAMS = {
    "roles: drawn from src/pandomq/replica/roles/transitions.py": diagram(transitions.TRANSITIONS),
    "broker states: drawn from src/pandomq/node/broker_state.py": diagram(broker_state.TRANSITIONS),
}


def page(text: str) -> str:
    """Returns the page with the diagrams of the current tables."""
    for name, drawn in DIAGRAMS.items():
        begin, end = f"<!-- {name} by tools/role_diagram.py -->\n", f"<!-- end of {name.split(':')[0]} -->\n"
        text = replace_between(text, begin, end, drawn)
    return text


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page))
