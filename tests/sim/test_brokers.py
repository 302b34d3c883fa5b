"""Worlds of several brokers: whatever happens to them and to the network between them, promises hold."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pandomq.sim.campaign import Job, run_job

SEEDS = range(450)
SEEDS_AT_ONCE = 200
"""The others take long, and are for `make test-all`."""
SEEDS_PER_TEST = 5
FOUND_BY = (1794826424003,)
"""Seeds that once broke a promise."""


@pytest.mark.proves("R5", "R8", "R9")
@pytest.mark.parametrize(
    "first",
    [
        *SEEDS[:SEEDS_AT_ONCE:SEEDS_PER_TEST],
        *(pytest.param(first, marks=pytest.mark.slow) for first in SEEDS[SEEDS_AT_ONCE::SEEDS_PER_TEST]),
    ],
)
def test_promises_hold(first: int) -> None:
    for seed in range(first, first + SEEDS_PER_TEST):
        job = Job(seed, nodes=0)
        outcome = run_job(job)
        assert not outcome.broken, f"{job.command(seed)}\n" + "\n".join(outcome.story)


@pytest.mark.parametrize("seed", FOUND_BY)
def test_what_was_once_broken_stays_mended(seed: int) -> None:
    job = Job(seed, nodes=0)
    outcome = run_job(job)
    assert not outcome.broken, f"{job.command(seed)}\n" + "\n".join(outcome.story)


def test_worlds_are_worth_something() -> None:
    outcomes = [run_job(Job(seed, nodes=3)) for seed in range(1000, 1010)]
    assert sum(outcome.messages for outcome in outcomes) > 20 * 10
    assert sum(outcome.lives for outcome in outcomes) > 5 * 10


def hashes(seeds: int, **environment: str) -> list[str]:
    code = (
        "import json\nfrom pandomq.sim.campaign import Job, run_job\n"
        f"print(json.dumps([run_job(Job(seed, nodes=3)).hash for seed in range({seeds})]))"
    )
    child = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    found: list[str] = json.loads(child.stdout)
    return found


def test_a_seed_has_one_course_on_both_kernels() -> None:
    fast = hashes(3, PANDOMQ_PLAIN="", PYTHONHASHSEED="1")
    assert fast == hashes(3, PANDOMQ_PLAIN="1", PYTHONHASHSEED="2")
    assert fast == [run_job(Job(seed, nodes=3)).hash for seed in range(3)]
    assert len(set(fast)) == len(fast)
