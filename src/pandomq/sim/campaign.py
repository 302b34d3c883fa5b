"""Runs many seeds, on several cores: a range of them, or as many as fit a time; with a planted bug or without.

Each process runs whole worlds, one after the other. What comes back from it is small: a hash, counts, and the story of
what went wrong.
"""

from __future__ import annotations

import gc
import itertools
import logging
import multiprocessing
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

import msgspec

from pandomq.sim.cluster.world import ClusterWorld, serves_anywhere, settles_through_fronts
from pandomq.sim.logs.world import LogWorld
from pandomq.sim.mutations.catalogue import MUTATIONS
from pandomq.sim.mutations.mutation import Mutation
from pandomq.sim.outcome import Outcome
from pandomq.sim.world import World, churns, has_streams

NODES_DRAWN: Final = 5
"""Where the number of brokers is left to the seed it is at most this."""
JOBS_AHEAD: Final = 4
"""Jobs that wait or run, for each process."""
GARBAGE_MAX: Final = 100_000
"""Objects that may wait for the collector while a world runs."""
MUTANT_SEEDS_MAX: Final = 2_000
"""A planted bug that these many schedules do not find counts as not found."""


class Job(msgspec.Struct, frozen=True):
    seed: int
    nodes: int = 1
    """0 leaves it to the seed."""
    log: bool = False
    """The log alone, without brokers."""
    mutant: str = ""
    plot: str | None = None
    """Of a world of logs; empty for none. Left out, the seed chooses."""
    traced: bool = False
    """Brokers trace what happens to messages."""

    def command(self, seed: int) -> str:
        """What a person types to see this world."""
        log = " --log" if self.log else ""
        nodes = f" --nodes {self.nodes}" if self.nodes != 1 else ""
        mutant = f" --mutant {self.mutant}" if self.mutant else ""
        traced = " --traced" if self.traced else ""
        return f"pandomq sim{log}{nodes}{mutant}{traced} --seed {seed} --explain"


def run_job(job: Job, show: Callable[[str], None] | None = None) -> Outcome:
    """`show` is told everything, as it happens."""
    planted = MUTATIONS[job.mutant].planted() if job.mutant else nullcontext()
    with planted, quiet(), undisturbed():
        return _run_world(job, show)


def _run_world(job: Job, show: Callable[[str], None] | None) -> Outcome:
    if job.log:
        return LogWorld(job.seed, job.nodes or 1 + job.seed % NODES_DRAWN, show, job.plot).run()
    nodes = job.nodes or 1 + job.seed % NODES_DRAWN
    if nodes == 1:
        return World(job.seed, show, traced=job.traced).run()
    return ClusterWorld(job.seed, nodes, show, traced=job.traced).run()


@contextmanager
def quiet() -> Iterator[None]:
    """The log of a simulated broker is of no use to a person: the story is."""
    log = logging.getLogger("pandomq")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def undisturbed() -> Iterator[None]:
    """A world is small, and leaves little that only the collector finds: looking for it all the time takes longer than
    the memory is worth."""
    thresholds = gc.get_threshold()
    gc.set_threshold(GARBAGE_MAX, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def run_jobs(jobs: Iterable[Job], processes: int) -> Iterator[Outcome]:
    """In the order in which they are done; with one process in this one, and then in the order of the jobs."""
    if processes == 1:
        yield from map(run_job, jobs)
        return
    # Spawned, not forked: a child that inherits nothing has nothing to inherit a difference from.
    room = threading.Semaphore(processes * JOBS_AHEAD)
    over = threading.Event()

    def paced() -> Iterator[Job]:
        # The pool takes all that it can get, and jobs may never end.
        for job in jobs:
            room.acquire()
            if over.is_set():
                return
            yield job

    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        try:
            for outcome in pool.imap_unordered(run_job, paced()):
                room.release()
                yield outcome
        finally:
            over.set()
            room.release()


def seeds_from(first: int) -> Iterator[int]:
    return itertools.count(first)


class Catch(msgspec.Struct, frozen=True):
    """How a planted bug was found."""

    name: str
    about: str
    schedules: int
    """Until it was found; 0 if it was not."""
    promise: str = ""
    seen_by: str = ""


def _may_show(mutation: Mutation, seed: int) -> bool:
    return (
        (not mutation.acks or settles_through_fronts(seed, mutation.nodes))
        and (not mutation.fronts or serves_anywhere(seed, mutation.nodes))
        and (not mutation.churn or churns(seed))
        and (not mutation.streams or has_streams(seed))
    )


def hunt(name: str, seeds_max: int = MUTANT_SEEDS_MAX, first_seed: int = 0) -> Catch:
    mutation = MUTATIONS[name]
    seeds = (seed for seed in seeds_from(first_seed) if _may_show(mutation, seed))
    for count, seed in enumerate(itertools.islice(seeds, seeds_max), start=1):
        outcome = run_job(Job(seed, mutation.nodes, mutation.log, name))
        if outcome.broken:
            return Catch(name, mutation.about, count, outcome.promise, outcome.seen_by)
    return Catch(name, mutation.about, 0)
