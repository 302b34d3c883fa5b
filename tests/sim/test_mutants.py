"""The simulator is worth something: it finds bugs that were planted."""

from __future__ import annotations

import pytest

from pandomq.sim.campaign import hunt
from pandomq.sim.mutations.catalogue import MUTATIONS

QUICK_IN_LOGS = {"ack-before-sync", "commit-alone", "commit-below-half", "received-is-synced"}
SUBTLE = {"tail-not-cut", "unbind-not-logged", "kept-not-synced", "snapshot-always-exact", "entry-in-two"} | {
    name for name, mutation in MUTATIONS.items() if mutation.log and name not in QUICK_IN_LOGS
}
"""Found after a while only; `make sim-mutants` and the slow tests wait for it."""


@pytest.mark.parametrize("name", [name for name in MUTATIONS if name not in SUBTLE])
def test_a_planted_bug_is_found(name: str) -> None:
    assert hunt(name).schedules


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SUBTLE))
def test_a_subtle_one_is_found_in_time(name: str) -> None:
    assert hunt(name).schedules
