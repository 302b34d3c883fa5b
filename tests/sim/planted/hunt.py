"""Looks for a planted bug: runs one world after the other until a checker finds it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

import msgspec

from pandomq.sim.campaigns.campaign import Job, run_job
from tests.sim.planted.catalogue import PLANTED_BUGS

SEEDS_FIRST: Final = 940_000_000
"""The first seed that is used with planted bugs. It is not low: low seeds keep the course that once broke a promise."""
SEEDS_MAX: Final = 500
"""A planted bug that is not found in this many worlds counts as not found."""


class PlantedJob(Job, frozen=True):
    """A world that runs with a planted bug."""

    bug: str = ""

    def program(self) -> str:
        return f"python -m tools.planted_bugs sim {self.bug} --nodes {self.nodes}"

    def changed_code(self) -> AbstractContextManager[None]:
        return PLANTED_BUGS[self.bug].planted()


def job_with(name: str, seed: int = 0, nodes: int | None = None) -> PlantedJob:
    """Returns a world in which the bug can show. `nodes` replaces the usual number of brokers."""
    bug = PLANTED_BUGS[name]
    return PlantedJob(seed, bug.nodes if nodes is None else nodes, bug.log, bug=name)


class Catch(msgspec.Struct, frozen=True):
    """How a planted bug was found."""

    name: str
    schedules: int
    """The number of worlds until the bug was found; 0 if it was not found."""
    promise: str = ""
    seen_by: str = ""


def hunt(name: str) -> Catch:
    """Looks for the bug in one world after the other, whether or not the bug can show in that world."""
    for count, seed in enumerate(range(SEEDS_FIRST, SEEDS_FIRST + SEEDS_MAX), start=1):
        job = job_with(name, seed)
        outcome = run_job(job)
        # A world that breaks a promise without the planted bug proves nothing.
        if outcome.broken and not run_job(Job(seed, job.nodes, job.log)).broken:
            return Catch(name, count, outcome.promise, outcome.seen_by)
    return Catch(name, 0)
