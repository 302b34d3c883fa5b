"""`pandomq pipeline simulate`: the simulator's seeds, spread over Spark's executors.

Each task runs whole worlds, one seed after the other, with the production code that is installed where it runs; what
comes back is a row a world. A version that differs among executors is an error: their results would not compare.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq import __version__
from pandomq.kernel import KIND
from pandomq.pipeline import plots
from pandomq.pipeline.summary import Plot, Summary, Table
from pandomq.sim.campaign import Job, run_job
from pandomq.sim.outcome import Outcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS_PER_TASK: Final = 20
"""A task is to take some seconds: long enough to be worth starting, short enough to show progress."""
TASKS_MAX: Final = 10_000
TIMES_MS: Final = (50, 100, 200, 400, 800, 1600, 3200)
STORIES_MAX: Final = 5
"""Told in the report; of the others the seeds."""


class World(msgspec.Struct, frozen=True):
    """What comes back of one."""

    outcome: Outcome
    taken_ms: int
    version: str
    """Of the code that ran it, and which kernel."""


class MixedVersions(Exception):
    """Executors run different code."""


def simulate(session: SparkSession, seeds: range, job: Job, advance: Callable[[int], None] = lambda _: None) -> Summary:
    """`advance` hears how many worlds have ended since it was last called. Raises MixedVersions."""
    begun_s = time.monotonic()
    tasks = max(1, min(TASKS_MAX, -(-len(seeds) // SEEDS_PER_TASK)))
    worlds: list[World] = []
    rows = session.sparkContext.parallelize(seeds, tasks).mapPartitions(_runner(job))
    for encoded in rows.toLocalIterator(prefetchPartitions=True):
        worlds.append(msgspec.json.decode(encoded, type=World))
        advance(1)
    return summarize(worlds, job, time.monotonic() - begun_s)


def _runner(job: Job) -> Callable[[Iterable[int]], Iterator[bytes]]:
    def run(seeds: Iterable[int]) -> Iterator[bytes]:
        for seed in seeds:
            begun_s = time.monotonic()
            outcome = run_job(msgspec.structs.replace(job, seed=seed))
            taken_ms = round((time.monotonic() - begun_s) * 1000)
            yield msgspec.json.encode(World(outcome, taken_ms, f"{__version__}, {KIND} kernel"))

    return run


def summarize(worlds: Sequence[World], job: Job, taken_s: float) -> Summary:
    """Raises MixedVersions."""
    versions = {world.version for world in worlds}
    if len(versions) > 1:
        raise MixedVersions(f"executors run different code: {'; '.join(sorted(versions))}")
    outcomes = sorted((world.outcome for world in worlds), key=lambda outcome: outcome.seed)
    broken = [outcome for outcome in outcomes if outcome.broken]
    faults = sum((Counter(outcome.faults) for outcome in outcomes), Counter[str]())
    facts: dict[str, object] = {
        "schedules": len(outcomes),
        "seeds": f"{outcomes[0].seed}..{outcomes[-1].seed}",
        "faults": faults.total(),
        "events": sum(outcome.events for outcome in outcomes),
        "messages": sum(outcome.messages for outcome in outcomes),
        "starts of brokers": sum(outcome.lives for outcome in outcomes),
        "broken promises": len(broken),
        "seconds": round(taken_s, 1),
        "schedules a second": round(len(outcomes) / taken_s, 1),
        "version": versions.pop(),
    }
    tables = [Table("Faults", ("kind", "how often"), faults.most_common())]
    if broken:
        rows = [(one.seed, one.promise, one.broken, job.command(one.seed)) for one in broken]
        tables.append(Table("Broken promises", ("seed", "promise", "what happened", "to see it"), rows))
    tables += [
        Table(f"The story of seed {one.seed}", ("what happened",), [(line,) for line in one.story])
        for one in broken[:STORIES_MAX]
    ]
    verdict = f"{len(broken)} of {len(outcomes)} schedules broke a promise" if broken else "no promise was broken"
    took = Plot("How long a schedule took", plots.bars(_by_time(worlds), "schedules"))
    return Summary("simulate", verdict, not broken, facts, tables, [took])


def _by_time(worlds: Sequence[World]) -> list[tuple[str, float]]:
    """How many took up to which time."""
    counts = Counter(next((limit for limit in TIMES_MS if world.taken_ms <= limit), 0) for world in worlds)
    named = [(f"up to {limit} ms", float(counts[limit])) for limit in TIMES_MS]
    return [*named, (f"more than {TIMES_MS[-1]} ms", float(counts[0]))]
