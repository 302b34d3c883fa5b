"""Worlds in which messages are traced: the promises hold, and a seed has one course, on either kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pandomq.sim.campaigns.campaign import Job, run_job

SEEDS = {1: range(5), 3: range(2)}
"""Seeds by the number of brokers."""


@pytest.mark.timeout(300)
@pytest.mark.parametrize("nodes", SEEDS)
def test_promises_hold_and_a_seed_has_one_course_on_both_kernels(nodes: int) -> None:
    seeds = SEEDS[nodes]
    outcomes = [run_job(Job(seed, nodes=nodes, traced=True)) for seed in seeds]
    for seed, outcome in zip(seeds, outcomes, strict=True):
        assert not outcome.broken, f"{Job(seed, nodes=nodes, traced=True).command(seed)}\n" + "\n".join(outcome.story)
    hashes = [outcome.hash for outcome in outcomes]
    plain = "" if os.environ.get("PANDOMQ_PLAIN") else "1"
    code = (
        "import json\nfrom pandomq.sim.campaigns.campaign import Job, run_job\n"
        f"print(json.dumps([run_job(Job(seed, nodes={nodes}, traced=True)).hash for seed in {list(seeds)}]))"
    )
    child = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PANDOMQ_PLAIN": plain, "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(child.stdout) == hashes
    assert hashes[0] != run_job(Job(seeds[0], nodes=nodes)).hash
