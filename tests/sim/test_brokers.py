"""Worlds of several brokers: the promises hold under all faults of brokers and of the network between them."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pandomq.sim.campaigns.campaign import Job, run_job
from tests.sim.chosen import chosen_portions, name_portion, portions

pytestmark = pytest.mark.timeout(300)
"""The limit is for several worlds, on a machine that may be busy."""

SLOW_SEEDS = range(200, 450)
"""Too many for `make test`: `make test-all` runs them."""
SEEDS_PER_TEST = 5


@pytest.mark.proves("R5", "R8", "R9", "R38")
@pytest.mark.parametrize(
    "seeds",
    [
        *chosen_portions("brokers", SEEDS_PER_TEST),
        *(pytest.param(seeds, marks=pytest.mark.slow) for seeds in portions(list(SLOW_SEEDS), SEEDS_PER_TEST)),
    ],
    ids=name_portion,
)
def test_promises_hold(seeds: list[int]) -> None:
    for seed in seeds:
        job = Job(seed, nodes=0)
        outcome = run_job(job)
        assert not outcome.broken, f"{job.command(seed)}\n" + "\n".join(outcome.story)


def test_worlds_are_worth_something() -> None:
    outcomes = [run_job(Job(seed, nodes=3)) for seed in range(1000, 1010)]
    assert sum(outcome.messages for outcome in outcomes) > 20 * 10
    assert sum(outcome.lives for outcome in outcomes) > 5 * 10


def hashes(seeds: int, **environment: str) -> list[str]:
    code = (
        "import json\nfrom pandomq.sim.campaigns.campaign import Job, run_job\n"
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
