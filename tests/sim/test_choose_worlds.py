"""The worlds of `make test` are chosen by the branches and pairs of faults that they reach."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.sim.chosen import IN_MAKE_TEST, chosen_portions, chosen_seeds, chosen_worlds, portions
from tools.choose_worlds import KINDS, ROOT, Measured, choose, note_of, read_notes


def world(seed: int, branches: int, pairs: tuple[str, ...] = (), events: int = 100) -> Measured:
    return Measured("logs", seed, events, 0.1, branches, pairs, "")


def test_worlds_that_add_nothing_are_not_chosen() -> None:
    worlds = [world(1, 0b0011), world(2, 0b1111), world(3, 0b0101, ("3: kill, power",)), world(4, 0b1000, events=500)]
    # First everything is reached once; then as much as possible a second time.
    assert [one.seed for one in choose(worlds, 10_000)] == [2, 3, 1, 4]
    assert [one.seed for one in choose(worlds[:2], 100)] == [2]


@pytest.mark.parametrize("seed", range(20))
def test_the_chosen_worlds_reach_as_much_as_all_within_their_budget(seed: int) -> None:
    random = Random(seed)
    worlds = [
        world(number, random.getrandbits(200) & random.getrandbits(200), (f"{random.randrange(30)}",), 50 + number)
        for number in range(60)
    ]
    chosen = choose(worlds, 10_000_000)
    assert _bits(chosen) == _bits(worlds)
    assert {pair for one in chosen for pair in one.pairs} == {pair for one in worlds for pair in one.pairs}
    assert len({one.seed for one in chosen}) == len(chosen)
    few = choose(worlds, 500)
    assert sum(one.events for one in few) <= 500
    assert few
    assert choose(worlds[::-1], 10_000_000) == chosen


def _bits(worlds: list[Measured]) -> int:
    found = 0
    for one in worlds:
        found |= one.branches
    return found


def test_notes_are_read_back_unless_the_source_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "notes.jsonl"
    assert read_notes(path, "one") == []
    worlds = [world(1, 0b1001, ("3: kill, power",)), world(2, 2**300)]
    with path.open("a") as file:
        file.write("".join(map(note_of, worlds)) + '["logs", 3, 1')
    assert read_notes(path, "one") == worlds
    assert read_notes(path, "one") == worlds
    assert read_notes(path, "two") == []
    assert read_notes(path, "one") == []


@pytest.mark.timeout(300)
def test_a_small_choice_is_made_and_goes_on_from_its_notes(tmp_path: Path) -> None:
    def run(count: int) -> tuple[str, dict[str, dict[str, object]]]:
        options = ["--worlds", str(count), "--jobs", "1", "--notes", str(tmp_path / "notes"), "--out", str(out)]
        command = [sys.executable, "-m", "tools.choose_worlds", *options]
        said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        return said, json.loads(out.read_text())

    out = tmp_path / "chosen.json"
    said, chosen = run(1)
    assert said.startswith("0 worlds")
    assert all(len(chosen[kind]["seeds"]) == 1 for kind in KINDS)  # type: ignore[arg-type]
    said, chosen = run(2)
    assert said.startswith("4 worlds")
    for kind in KINDS:
        tried, found = chosen[kind]["tried"], chosen[kind]["chosen"]
        assert tried["worlds"] == 2  # type: ignore[index]
        assert tried["branches"] == found["branches"] > 500  # type: ignore[index]


def test_the_choice_is_within_its_budget_and_reaches_more_than_the_first_seeds_do() -> None:
    for kind, found in chosen_worlds().items():
        if kind not in KINDS:
            continue
        tried, chosen, first = found["tried"], found["chosen"], found["first_as_many"]
        assert chosen["worlds"] == len(set(found["seeds"]))
        assert chosen["events"] <= KINDS[kind].budget * tried["events"] / tried["worlds"] * 1.01
        assert chosen["branches"] + chosen["pairs_of_faults"] >= first["branches"] + first["pairs_of_faults"]


def test_every_portion_has_some_of_the_first() -> None:
    assert portions([1, 2, 3, 4, 5], 2) == [[1, 4], [2, 5], [3]]


@pytest.mark.parametrize("kind", KINDS)
def test_make_test_runs_the_first_and_no_world_is_left_out_of_both(kind: str) -> None:
    seeds, first = chosen_seeds(kind), IN_MAKE_TEST[kind]
    given = chosen_portions(kind, 5)
    quick = [seed for one in given if not one.marks for seed in one.values[0]]  # type: ignore[union-attr]
    slow = [seed for one in given if one.marks for seed in one.values[0]]  # type: ignore[union-attr]
    assert sorted(quick) == sorted(seeds[:first])
    assert sorted(slow) == sorted(seeds[first:])
