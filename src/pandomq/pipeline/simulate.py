"""`pandomq pipeline simulate`: the simulator's seeds, spread over Spark's executors.

Each task runs whole worlds, one seed after the other, with the production code that is installed on the executor; it
returns a row for each world, which may be saved (`SeedNotes`): an interrupted campaign continues with the others.
Different versions on executors are an error: their results would not be comparable.
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
from pandomq.pipeline.simulate_notes import SeedNotes, WorldResult
from pandomq.pipeline.summary import Chart, Summary, SummaryTable
from pandomq.sim.campaigns.campaign import Job, run_job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEDS_PER_TASK: Final = 20
"""A task should take some seconds: long enough to be worth starting, short enough to show progress."""
TASKS_MAX: Final = 10_000
TIMES_MS: Final = (50, 100, 200, 400, 800, 1600, 3200)
VERSION: Final = f"{__version__}, {KIND} kernel"
STORIES_MAX: Final = 5
"""Failures in the report; only the seeds of further ones are listed."""


class MixedVersions(Exception):
    """Executors run different code."""


def simulate(
    session: SparkSession,
    seeds: range,
    job: Job,
    advance: Callable[[int], None] = lambda _: None,
    notes: Path | None = None,
) -> Summary:
    """Calls `advance` with the number of worlds that have ended since the last call. `notes`: a file for finished
    worlds. Raises MixedVersions, OtherCampaign."""
    begun_s = time.monotonic()
    with SeedNotes(notes, job, VERSION) as noted:
        worlds = [noted.worlds[seed] for seed in seeds if seed in noted.worlds]
        before = len(worlds)
        advance(before)
        left = [seed for seed in seeds if seed not in noted.worlds]
        tasks = max(1, min(TASKS_MAX, -(-len(left) // SEEDS_PER_TASK)))
        rows = session.sparkContext.parallelize(left, tasks).mapPartitions(partial(_run, job))
        for encoded in rows.toLocalIterator(prefetchPartitions=True):
            worlds.append(msgspec.json.decode(encoded, type=WorldResult))
            noted.keep(worlds[-1])
            advance(1)
    return summarize(worlds, job, time.monotonic() - begun_s, before)


def _run(job: Job, seeds: Iterable[int]) -> Iterator[bytes]:
    """Executors find this function by its name: so it is their own code, in their own version."""
    for seed in seeds:
        begun_s = time.monotonic()
        outcome = run_job(msgspec.structs.replace(job, seed=seed))
        taken_ms = round((time.monotonic() - begun_s) * 1000)
        yield msgspec.json.encode(WorldResult(outcome, taken_ms, VERSION))


def summarize(worlds: Sequence[WorldResult], job: Job, taken_s: float, before: int = 0) -> Summary:
    """`before` worlds had ended earlier, and are not part of the time. Raises MixedVersions."""
    versions = {world.version for world in worlds}
    if len(versions) > 1:
        raise MixedVersions(f"executors run different versions: {'; '.join(sorted(versions))}")
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
    tables = [SummaryTable("Faults", ("kind", "how often"), faults.most_common())]
    if broken:
        rows = [(one.seed, one.promise, one.broken, job.command(one.seed)) for one in broken]
        tables.append(SummaryTable("Broken promises", ("seed", "promise", "what happened", "to see it"), rows))
    tables += [
        SummaryTable(f"The story of seed {one.seed}", ("what happened",), [(line,) for line in one.story])
        for one in broken[:STORIES_MAX]
    ]
    verdict = (
        f"{len(broken)} of {len(outcomes)} schedules violated a guarantee" if broken else "no guarantee was violated"
    )
    took = Chart("How long a schedule took", plots.bars(_by_time(worlds), "schedules"))
    return Summary("simulate", verdict, not broken, facts, tables, [took])


def _by_time(worlds: Sequence[WorldResult]) -> list[tuple[str, float]]:
    """Number of worlds by maximum duration."""
    counts = Counter(next((limit for limit in TIMES_MS if world.taken_ms <= limit), 0) for world in worlds)
    named = [(f"up to {limit} ms", float(counts[limit])) for limit in TIMES_MS]
    return [*named, (f"more than {TIMES_MS[-1]} ms", float(counts[0]))]
