"""Worlds of logs: several machines keep one log, whatever happens to them and to the network between them."""

from __future__ import annotations

import pytest

from pandomq.sim.campaign import Job, run_job

SEEDS = range(560)
SEEDS_PER_TEST = 20


FOUND_BY = (598,)
"""Seeds that once broke a promise."""


@pytest.mark.proves("R5", "R8", "R9", "L5")
@pytest.mark.parametrize("first", SEEDS[::SEEDS_PER_TEST])
def test_promises_hold(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        outcome = run_job(Job(seed, nodes=0, log=True))
        assert not outcome.broken, f"pandomq sim --log --nodes 0 --seed {seed} --explain\n" + "\n".join(outcome.story)


@pytest.mark.parametrize("seed", FOUND_BY)
def test_what_was_once_broken_stays_mended(seed: int) -> None:
    outcome = run_job(Job(seed, nodes=0, log=True))
    assert not outcome.broken, f"pandomq sim --log --nodes 0 --seed {seed} --explain\n" + "\n".join(outcome.story)


def test_a_seed_has_one_course() -> None:
    jobs = [Job(seed, nodes=0, log=True) for seed in range(5)]
    hashes = [run_job(job).hash for job in jobs]
    assert hashes == [run_job(job).hash for job in jobs]
    assert len(set(hashes)) == len(hashes)
