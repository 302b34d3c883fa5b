"""Seeds on executors: the same worlds as in a process of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pandomq.pipeline.simulate import simulate
from pandomq.sim.campaigns.campaign import Job, run_job
from tests.sim.planted.hunt import job_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.proves("S7")
def test_executors_run_the_same_worlds_as_a_single_process(spark: SparkSession) -> None:
    done: list[int] = []
    seeds = range(1, 7)
    summary = simulate(spark, seeds, Job(0, nodes=3, log=True), done.append)
    assert summary.good and summary.facts["schedules"] == sum(done) == len(seeds)
    alone = [run_job(Job(seed, nodes=3, log=True)) for seed in seeds]
    assert summary.facts["events"] == sum(outcome.events for outcome in alone)
    assert summary.facts["faults"] == sum(sum(one.faults.values()) for one in alone)


def test_a_planted_bug_is_found(spark: SparkSession) -> None:
    summary = simulate(spark, range(5), job_with("log-not-synced"))
    assert not summary.good
    assert "sim log-not-synced" in str(summary.tables[1].rows[0])
