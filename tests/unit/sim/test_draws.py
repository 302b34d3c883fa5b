"""Draws that worlds make often equal those of `random`."""

from __future__ import annotations

from random import Random

from pandomq.sim.draws import draw_between


def test_a_draw_between_two_numbers_is_that_of_randint() -> None:
    for seed in range(300):
        ours, theirs, spans = Random(seed), Random(seed), Random(f"spans {seed}")
        for _ in range(20):
            low = spans.randint(-50, 50)
            high = low + spans.choice((0, 1, 2, 3, 7, 8, 500, 4_000, 2**40))
            assert draw_between(ours, low, high) == theirs.randint(low, high)
        assert ours.getstate() == theirs.getstate()
