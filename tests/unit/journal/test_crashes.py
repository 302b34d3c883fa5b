"""Any interleaving of appends, syncs, cuts, snapshots, reclaiming and crashes, also of recovery itself."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import examples
from tests.unit.journal.operations import OPERATIONS, Operation, program, run
from tests.unit.journal.store import Store


@settings(max_examples=examples(300))
@given(
    seed=st.integers(0, 2**32),
    early=st.booleans(),
    told_late=st.booleans(),
    operations=st.lists(OPERATIONS, max_size=40),
)
def test_synced_entries_and_no_others_survive_in_order(
    seed: int, early: bool, told_late: bool, operations: list[Operation]
) -> None:
    run(Store(seed, early=early, told_late=told_late), operations)


def test_synced_entries_survive_in_longer_programs() -> None:
    for seed in range(60):
        run(Store(seed, early=bool(seed % 2), told_late=seed % 4 >= 2), program(Random(seed), 100))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_synced_entries_survive_in_many_longer_programs() -> None:
    for seed in range(1_000, 3_000):
        run(Store(seed, early=bool(seed % 2), told_late=seed % 4 >= 2), program(Random(seed), 120))
