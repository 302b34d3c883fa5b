"""Paging is invisible: a world with pages does what one without does."""

from __future__ import annotations

from types import ModuleType

import hypothesis
import hypothesis.strategies as st

from tests.support.examples import examples
from tests.unit.kernel.paging_law import SETTINGS, WEIGHTS, PagingLaw

NUMBERS = st.integers(0, 255)
NAMES = st.sampled_from([name for name, weight in WEIGHTS.items() for _ in range(weight)])
SCRIPTS = st.lists(st.tuples(NAMES, NUMBERS, NUMBERS, NUMBERS), min_size=30, max_size=100)
KINDS = st.integers(0, 2 * len(SETTINGS) ** 2 - 1)


@hypothesis.settings(max_examples=examples(120), suppress_health_check=list(hypothesis.HealthCheck))
@hypothesis.given(kind=KINDS, script=SCRIPTS)
def test_a_paged_queue_behaves_like_one_in_memory(
    kernel: ModuleType, kind: int, script: list[tuple[str, int, int, int]]
) -> None:
    law = PagingLaw(kernel, kind)
    for step in script:
        law.step(*step)
