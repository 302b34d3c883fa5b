"""Many seeds on several cores."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

from pandomq.sim.campaigns.campaign import JOBS_AHEAD, Job, run_job, run_jobs


def test_jobs_without_end_are_taken_as_they_are_done() -> None:
    taken = 0

    def jobs() -> Iterator[Job]:
        nonlocal taken
        for seed in count():
            taken += 1
            yield Job(seed)

    running = run_jobs(jobs(), 2)
    assert len(list(islice(running, 12))) == 12
    running.close()  # type: ignore[attr-defined]
    assert taken <= 12 + 2 * JOBS_AHEAD + 1


def test_a_world_does_not_depend_on_the_worlds_before_it() -> None:
    """Injected exceptions count calls, and a cached pattern of an earlier world would save some."""
    for seed in (970000034, 970000133):
        assert run_job(Job(seed)).hash == run_job(Job(seed)).hash
