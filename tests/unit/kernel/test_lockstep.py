"""The two twins do the same for the same calls, whatever the calls are."""

from __future__ import annotations

from types import ModuleType

import hypothesis
import hypothesis.strategies as st
import pytest

from tests.support.examples import examples
from tests.unit.kernel.lockstep import Lockstep, Step
from tests.unit.kernel.operations import OPERATIONS, SETTINGS, WEIGHTS

NUMBERS = st.integers(0, 255)
NAMES = st.sampled_from([name for name in OPERATIONS for _ in range(WEIGHTS[name])])
SCRIPTS = st.lists(st.tuples(NAMES, NUMBERS, NUMBERS, NUMBERS), min_size=40, max_size=120)


@pytest.mark.timeout(240)
@hypothesis.settings(max_examples=examples(300), suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(kind=st.integers(0, len(SETTINGS) - 1), script=SCRIPTS)
def test_same_calls_same_effects(plain: ModuleType, fast: ModuleType, kind: int, script: list[Step]) -> None:
    pair = Lockstep(plain, fast, kind)
    for step in script:
        pair.step(step)
    pair.finish()


def test_a_publish_that_was_confirmed_ahead_of_others_is_traced_once(plain: ModuleType, fast: ModuleType) -> None:
    """The twins once disagreed about the rows that it has when the others follow."""
    pair = Lockstep(plain, fast, 9)
    for step in (
        ("publish_bytes", 0, 0, 128),
        ("publish_bytes", 0, 0, 0),
        ("end_batch", 0, 0, 0),
        ("receive", 0, 0, 0),
        ("enqueue", 0, 1, 1),
    ):
        pair.step(step)
    pair.finish()


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_runs(plain: ModuleType, fast: ModuleType, name: str) -> None:
    pair = Lockstep(plain, fast)
    for number in range(40):
        pair.step(("publish_bytes", 0, number, number))
        pair.step((name, number, number // 2, number // 3))
        pair.step(("end_batch", number, number, number))
    pair.finish()
