"""Worlds of logs: several machines keep one log, under all faults of machines and of the network between them."""

from __future__ import annotations

import pytest

from pandomq.sim.campaigns.campaign import Job, run_job
from tests.sim.chosen import chosen_portions, name_portion

pytestmark = pytest.mark.timeout(300)
"""The limit is for several worlds, on a machine that may be busy."""

SEEDS_PER_TEST = 20
FOUND_BY = (598,)
"""Seeds that once broke a promise."""


@pytest.mark.proves("R5", "R8", "R9", "L5")
@pytest.mark.parametrize("seeds", chosen_portions("logs", SEEDS_PER_TEST), ids=name_portion)
def test_promises_hold(seeds: list[int]) -> None:
    for seed in seeds:
        outcome = run_job(Job(seed, nodes=0, log=True))
        assert not outcome.broken, f"pandomq sim --log --nodes 0 --seed {seed} --explain\n" + "\n".join(outcome.story)


@pytest.mark.parametrize("seed", FOUND_BY)
def test_worlds_that_once_failed_pass(seed: int) -> None:
    outcome = run_job(Job(seed, nodes=0, log=True))
    assert not outcome.broken, f"pandomq sim --log --nodes 0 --seed {seed} --explain\n" + "\n".join(outcome.story)


def test_a_seed_has_one_course() -> None:
    jobs = [Job(seed, nodes=0, log=True) for seed in range(5)]
    hashes = [run_job(job).hash for job in jobs]
    assert hashes == [run_job(job).hash for job in jobs]
    assert len(set(hashes)) == len(hashes)
