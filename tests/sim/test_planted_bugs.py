"""The simulator finds planted bugs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.planted.catalogue import MODULES, PLANTED_BUGS
from tests.sim.planted.hunt import hunt

PAGE = Path(__file__).parent.parent.parent / "docs" / "planted-bugs.md"
QUICK_SCHEDULES_MAX = 2
LONG = {
    "forget-unlogged",
    "full-root-stays",
    "numbers-not-logged",
    "old-set-only",
    "successor-another",
    "successor-anybody",
    "successor-behind",
}
"""The worlds in which these are found take five to ten seconds each."""
PATIENT = "progress"
"""A world that waits for an event that never happens takes a hundred times as long as others."""


def rows() -> list[list[str]]:
    """Returns the rows that `make sim-mutants` has written."""
    found = [line.strip("| \n").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [cells for cells in found if cells[0] in PLANTED_BUGS]


AT_MOST = "≤ "
NUMBERS = {cells[0]: cells[2].removeprefix(AT_MOST) for cells in rows()}
FOUND = {name: int(number) if number.isdecimal() else 0 for name, number in NUMBERS.items()}
"""By name: the maximum number of schedules until it was found; 0 if it was not found."""
QUICK = sorted(
    cells[0]
    for cells in rows()
    if 0 < FOUND[cells[0]] <= QUICK_SCHEDULES_MAX and cells[0] not in LONG and not cells[3].startswith(PATIENT)
)
SUBTLE = sorted(set(PLANTED_BUGS) - set(QUICK))
"""Bugs that take longer to find; `make sim-mutants` and the slow tests look for them."""


def test_each_planted_bug_has_a_name_of_its_own() -> None:
    names = [bug.name for module in MODULES for bug in module.PLANTED_BUGS]
    assert sorted(names) == sorted(set(names))


def test_each_planted_bug_has_a_test() -> None:
    assert sorted([*QUICK, *SUBTLE]) == sorted(PLANTED_BUGS)
    assert set(PLANTED_BUGS) >= LONG


def test_the_page_has_all_of_them_and_all_are_found() -> None:
    assert set(FOUND) == set(PLANTED_BUGS)
    assert all(FOUND.values()), [name for name, schedules in FOUND.items() if not schedules]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", QUICK)
def test_a_planted_bug_is_found(name: str) -> None:
    assert hunt(name).schedules


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SUBTLE)
def test_a_subtle_one_is_found_in_time(name: str) -> None:
    assert hunt(name).schedules
