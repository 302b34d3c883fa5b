"""Plants one bug after the other, has the simulator look for it, and writes what it found into docs/reliability.md.

    tools/mutants_page.py              all of them
    tools/mutants_page.py NAME …       these; the rows of the others stay as they are

Ends with 1 if one was not found.
"""

from __future__ import annotations

import multiprocessing
import sys
from pathlib import Path
from typing import Final

from pandomq.sim.campaign import MUTANT_SEEDS_MAX, hunt
from pandomq.sim.mutations.catalogue import MUTATIONS
from pandomq.sim.mutations.mutation import Mutation

PAGE: Final = Path(__file__).parent.parent / "docs" / "reliability.md"
BEGIN: Final = "<!-- planted bugs: written by tools/mutants_page.py -->"
END: Final = "<!-- end of planted bugs -->"
PROCESSES: Final = 2
HEAD: Final = "| planted bug | what it does | found after | as a breach of | seen by |\n" + "| --- " * 5 + "|\n"
NOT_FOUND: Final = f"not in {MUTANT_SEEDS_MAX}"

ONE_BROKER: Final = "In worlds with one broker:"
SEVERAL_BROKERS: Final = "In worlds with several brokers:"
LOGS: Final = "In worlds of logs:"

Row = tuple[str, str, str]
"""After how many schedules it was found, as what, and by which file."""
UNKNOWN: Final[Row] = ("not looked for yet", "", "")


def title_of(mutation: Mutation) -> str:
    if mutation.log:
        return LOGS
    return ONE_BROKER if mutation.nodes == 1 else SEVERAL_BROKERS


def read_rows(text: str) -> dict[str, Row]:
    """By name."""
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] in MUTATIONS:
            rows[cells[0]] = (cells[2], cells[3], cells[4])
    return rows


def render(rows: dict[str, Row]) -> str:
    parts = [BEGIN]
    for title in (ONE_BROKER, SEVERAL_BROKERS, LOGS):
        lines = [
            f"| {name} | {mutation.about} | {' | '.join(rows.get(name, UNKNOWN))} |\n"
            for name, mutation in MUTATIONS.items()
            if title_of(mutation) == title
        ]
        parts.append(f"\n{title}\n\n{HEAD}{''.join(lines)}")
    return "\n".join(parts) + END


def main(names: list[str]) -> int:
    unknown = set(names) - set(MUTATIONS)
    if unknown:
        print(f"there is no planted bug {', '.join(sorted(unknown))}")
        return 2
    wanted = names or list(MUTATIONS)
    missed: list[str] = []
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        for catch in pool.imap(hunt, wanted):
            found = str(catch.schedules or NOT_FOUND)
            # Bars would end a cell.
            seen_by = catch.seen_by.replace("|", "/")
            print(f"{catch.name:30} {found:>12}  {catch.promise}  ({seen_by})", flush=True)
            _write(catch.name, (found, catch.promise, seen_by))
            if not catch.schedules:
                missed.append(catch.name)
    if missed:
        print(f"not found: {', '.join(missed)}")
    return 1 if missed else 0


def _write(name: str, row: Row) -> None:
    """At once, so that a run that is broken off has not been in vain."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    old, _, after = rest.partition(END)
    PAGE.write_text(before + render({**read_rows(old), name: row}) + after)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
