"""The simulator is worth something: it finds bugs that were planted."""

from __future__ import annotations

import pytest

from pandomq.sim.campaign import hunt
from pandomq.sim.mutations.catalogue import MUTATIONS

SUBTLE = {"tail-not-cut", "unbind-not-logged", "kept-not-synced", "snapshot-always-exact", "entry-in-two"}
"""Found after a while only; `make sim-mutants` and the slow tests wait for it."""


@pytest.mark.parametrize("name", [name for name in MUTATIONS if name not in SUBTLE])
def test_a_planted_bug_is_found(name: str) -> None:
    assert hunt(name).schedules


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SUBTLE))
def test_a_subtle_one_is_found_in_time(name: str) -> None:
    assert hunt(name).schedules
