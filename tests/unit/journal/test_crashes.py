"""Any interleaving of appends, syncs, cuts, snapshots, reclaiming and crashes, also of recovery itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.journal.operations import OPERATIONS, Operation, run
from tests.unit.journal.store import Store


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32), early=st.booleans(), operations=st.lists(OPERATIONS, max_size=40))
def test_what_was_synced_is_there_in_order_and_nothing_else(
    seed: int, early: bool, operations: list[Operation]
) -> None:
    run(Store(seed, early=early), operations)
