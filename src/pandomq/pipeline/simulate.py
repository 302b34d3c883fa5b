"""`pandomq pipeline simulate`: the simulator's seeds, spread over Spark's executors.

Each task runs whole worlds, one seed after the other, with the production code that is installed where it runs; what
comes back is a row a world, which may be noted (`SeedNotes`): a campaign that was broken off goes on with the others. A
version that differs among executors is an error: their results would not compare.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq import __version__
from pandomq.kernel import KIND
from pandomq.pipeline import plots
from pandomq.pipeline.simulate_notes import SeedNotes, World
from pandomq.pipeline.summary import Plot, Summary, Table
from pandomq.sim.campaign import Job, run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS_PER_TASK: Final = 20
"""A task is to take some seconds: long enough to be worth starting, short enough to show progress."""
TASKS_MAX: Final = 10_000
TIMES_MS: Final = (50, 100, 200, 400, 800, 1600, 3200)
VERSION: Final = f"{__version__}, {KIND} kernel"
STORIES_MAX: Final = 5
"""Told in the report; of the others the seeds."""


class MixedVersions(Exception):
    """Executors run different code."""


def simulate(
    session: SparkSession,
    seeds: range,
    job: Job,
    advance: Callable[[int], None] = lambda _: None,
    notes: Path | None = None,
) -> Summary:
    """`advance` hears how many worlds have ended since it was last called. `notes`: a file for those that have. Raises
    MixedVersions, OtherCampaign."""
    begun_s = time.monotonic()
    with SeedNotes(notes, job, VERSION) as noted:
        worlds = [noted.worlds[seed] for seed in seeds if seed in noted.worlds]
        before = len(worlds)
        advance(before)
        left = [seed for seed in seeds if seed not in noted.worlds]
        tasks = max(1, min(TASKS_MAX, -(-len(left) // SEEDS_PER_TASK)))
        rows = session.sparkContext.parallelize(left, tasks).mapPartitions(partial(_run, job))
        for encoded in rows.toLocalIterator(prefetchPartitions=True):
            worlds.append(msgspec.json.decode(encoded, type=World))
            noted.keep(worlds[-1])
            advance(1)
    return summarize(worlds, job, time.monotonic() - begun_s, before)


def _run(job: Job, seeds: Iterable[int]) -> Iterator[bytes]:
    """On executors, which find it by its name: so it is their own code, with their own version."""
    for seed in seeds:
        begun_s = time.monotonic()
        outcome = run_job(msgspec.structs.replace(job, seed=seed))
        taken_ms = round((time.monotonic() - begun_s) * 1000)
        yield msgspec.json.encode(World(outcome, taken_ms, VERSION))


def summarize(worlds: Sequence[World], job: Job, taken_s: float, before: int = 0) -> Summary:
    """So many of them had ended `before`, and took none of the time. Raises MixedVersions."""
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
        "schedules a second": round((len(outcomes) - before) / taken_s, 1),
        "version": versions.pop(),
    }
    if before:
        facts["schedules that were noted"] = before
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
