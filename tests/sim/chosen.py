"""Seeds of worlds that together reach much of the code, as `make sim-choose` has chosen them.

The worlds that reach most come first. `make test` runs the first ones, which reach nearly everything once or twice;
`make test-all` runs all of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.mark.structures import ParameterSet

PATH: Final = Path(__file__).parent / "chosen_worlds.json"

IN_MAKE_TEST: Final = {"one_broker": 100, "brokers": 50, "fronts": 14, "logs": 250}
"""The number of worlds by kind. They take a third of the time of all and reach at least 97 % of their branches."""


def chosen_worlds() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(PATH.read_text())
    return found


def chosen_seeds(kind: str) -> list[int]:
    seeds: list[int] = chosen_worlds()[kind]["seeds"]
    return seeds


def chosen_portions(kind: str, count: int) -> list[ParameterSet]:
    """Returns portions of so many seeds, for one test each; those that `make test` leaves out are marked as slow."""
    seeds, first = chosen_seeds(kind), IN_MAKE_TEST[kind]
    return [
        *(pytest.param(portion) for portion in portions(seeds[:first], count)),
        *(pytest.param(portion, marks=pytest.mark.slow) for portion in portions(seeds[first:], count)),
    ]


def portions(seeds: list[int], count: int) -> list[list[int]]:
    """Divides the seeds into one portion for each test: the seeds that reach most come first, and each portion gets
    some of them."""
    tests = -(-len(seeds) // count)
    return [seeds[first::tests] for first in range(tests)]


def name_portion(seeds: list[int]) -> str:
    """Returns pytest's name of a test: its first seed."""
    return f"{seeds[0]}-and-{len(seeds) - 1}-more"
