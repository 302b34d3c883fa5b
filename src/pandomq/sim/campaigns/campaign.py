"""Runs many seeds on several cores: a range of seeds, or as many as fit into a time.

Each process runs whole worlds, one after the other. It returns little: a hash, counts, and the story of a failure.
"""

from __future__ import annotations

import gc
import itertools
import logging
import multiprocessing
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

import msgspec

from pandomq.broker.administration.patterns import compile_pattern
from pandomq.sim.campaigns.outcome import WorldOutcome
from pandomq.sim.campaigns.reduction import Reduction
from pandomq.sim.cluster.world import ClusterWorld
from pandomq.sim.logs.world import LogWorld
from pandomq.sim.world import World

NODES_DRAWN: Final = 5
"""The largest number of brokers that a seed may draw."""
JOBS_AHEAD: Final = 4
"""The number of jobs that wait or run, for each process."""
GARBAGE_MAX: Final = 500_000
"""The number of objects that a world may create before the garbage collector looks at them."""


class Job(msgspec.Struct, frozen=True):
    seed: int
    nodes: int = 1
    """The number of brokers; 0 lets the seed choose."""
    log: bool = False
    """Runs the log alone, without brokers."""
    plot: str | None = None
    """The plot of a world of logs; empty for none. With None the seed chooses."""
    traced: bool = False
    """Brokers trace what happens to messages."""
    keep: Reduction = Reduction()
    """The part of the world that takes part."""

    @property
    def node_count(self) -> int:
        return self.nodes or 1 + self.seed % NODES_DRAWN

    def command(self, seed: int) -> str:
        """Returns the command that replays this world."""
        traced = " --traced" if self.traced else ""
        keep = "".join(f" --keep {word}" for word in self.keep.words())
        return f"{self.program()}{traced} --seed {seed}{keep} --explain"

    def program(self) -> str:
        """Returns the beginning of the command, which selects the kind of world."""
        log = " --log" if self.log else ""
        nodes = f" --nodes {self.nodes}" if self.nodes != 1 else ""
        return f"pandomq sim{log}{nodes}"

    def changed_code(self) -> AbstractContextManager[None]:
        """Changes the code for the time of the run. A derived job plants a bug; this one changes nothing."""
        return nullcontext()


def run_job(job: Job, show: Callable[[str], None] | None = None) -> WorldOutcome:
    """Runs one world. `show` is called with each event, as it happens."""
    # A cached pattern saves calls, and injected exceptions count calls: earlier jobs must not change the count.
    compile_pattern.cache_clear()
    with job.changed_code(), quiet(), undisturbed():
        return _run_world(job, show)


def _run_world(job: Job, show: Callable[[str], None] | None) -> WorldOutcome:
    if job.log:
        return LogWorld(job.seed, job.node_count, show, job.plot, job.keep).run()
    if job.node_count == 1:
        return World(job.seed, show, traced=job.traced, reduction=job.keep).run()
    return ClusterWorld(job.seed, job.node_count, show, traced=job.traced, reduction=job.keep).run()


@contextmanager
def quiet() -> Iterator[None]:
    """Turns off the log of the simulated brokers: the story describes what happens."""
    log = logging.getLogger("pandomq")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Collects garbage once, when the world is over, and looks only at objects of the world: most of it is one cycle,
    and little else is, so collections in between cost more time than the memory is worth."""
    thresholds = gc.get_threshold()
    gc.set_threshold(GARBAGE_MAX, *thresholds[1:])
    gc.freeze()
    try:
        yield
    finally:
        # References that the kernel holds in its own structures show only when the holder has been collected.
        while gc.collect():
            pass
        gc.unfreeze()
        gc.set_threshold(*thresholds)


def run_jobs(jobs: Iterable[Job], processes: int) -> Iterator[WorldOutcome]:
    """Yields outcomes as they complete. With one process the jobs run in this process, and outcomes come in the order
    of the jobs."""
    if processes == 1:
        yield from map(run_job, jobs)
        return
    # Processes are spawned, not forked, so that they inherit no state that could make a difference.
    room = threading.Semaphore(processes * JOBS_AHEAD)
    over = threading.Event()

    def paced() -> Iterator[Job]:
        # The pool consumes its iterator as fast as it can, and the iterator of jobs may be endless.
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
