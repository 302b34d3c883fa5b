"""The simulator is worth something: it finds bugs that were planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from pandomq.sim.campaign import hunt
from pandomq.sim.mutations.catalogue import MUTATIONS

PAGE = Path(__file__).parent.parent.parent / "docs" / "reliability.md"
QUICK_SCHEDULES_MAX = 3
PATIENT = "progress"
"""A world that waits for what never comes takes a hundred times as long as others."""


def rows() -> list[list[str]]:
    """As `make sim-mutants` has written them down."""
    found = [line.strip("| \n").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [cells for cells in found if cells[0] in MUTATIONS]


FOUND = {cells[0]: int(cells[2]) if cells[2].isdecimal() else 0 for cells in rows()}
"""After how many schedules; 0 for one that was not found."""
QUICK = sorted(
    cells[0] for cells in rows() if 0 < FOUND[cells[0]] <= QUICK_SCHEDULES_MAX and not cells[3].startswith(PATIENT)
)
SUBTLE = sorted(set(MUTATIONS) - set(QUICK))
"""Found after a while only; `make sim-mutants` and the slow tests wait for it."""


def test_the_page_has_all_of_them_and_all_are_found() -> None:
    assert set(FOUND) == set(MUTATIONS)
    assert all(FOUND.values()), [name for name, schedules in FOUND.items() if not schedules]


@pytest.mark.parametrize("name", QUICK)
def test_a_planted_bug_is_found(name: str) -> None:
    assert hunt(name).schedules


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBTLE)
def test_a_subtle_one_is_found_in_time(name: str) -> None:
    assert hunt(name).schedules
