"""Runs simulated worlds for `pandomq sim`, and shows the failures. The first broken one is shrunk.

Ends with 1 if a guarantee was violated.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pandomq import __version__
from pandomq.cli.failures import WrongUse
from pandomq.cli.output import say
from pandomq.kernel import KIND
from pandomq.sim.campaigns.campaign import Job, run_job, run_jobs, seeds_from
from pandomq.sim.campaigns.campaign_record import CampaignRun, append, code_hash, total_of
from pandomq.sim.campaigns.outcome import WorldOutcome
from pandomq.sim.campaigns.reduction import Reduction, WrongReduction, parse_reduction
from pandomq.sim.campaigns.shrink import Shrunk
from pandomq.sim.campaigns.shrink import shrink as shrink_world

_console = Console(stderr=True)
STORIES_MAX = 3
"""Shown in full; for further failures only the seeds."""


def run(
    job: Job,
    *,
    seeds: str,
    processes: int,
    seed: int | None,
    explain: bool,
    minutes: float,
    record: Path | None,
    keep: list[str],
    shrink: bool,
) -> None:
    """Runs worlds like that of the job, from the seeds that the options select."""
    if seed is not None:
        _show_one(msgspec.structs.replace(job, seed=seed, keep=_reduction(keep)), explain=explain, shrink=shrink)
    elif keep:
        raise WrongUse("--keep selects parts of one world: give its --seed")
    elif explain:
        raise WrongUse("--explain prints the events of one world: give its --seed")
    else:
        _show_many(seed_range(seeds), processes, job, minutes, record, shrink=shrink)


def _reduction(words: list[str]) -> Reduction:
    try:
        return parse_reduction(words)
    except WrongReduction as error:
        raise WrongUse(f"--keep: {error}") from error


def seed_range(text: str) -> range:
    first, dots, last = text.partition("..")
    try:
        found = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        found = range(0)
    if not found:
        raise WrongUse(f"{text!r} is not a range of seeds: expected, for example, 1..500")
    return found


def unknown_names(wanted: Reduction, found: Reduction) -> set[str]:
    """Names of clients, machines and features. A kept strike need not occur."""
    kept = {*(wanted.clients or ()), *(wanted.machines or ()), *(wanted.features or ())}
    return kept - {*(found.clients or ()), *(found.machines or ()), *(found.features or ())}


def _show_one(job: Job, *, explain: bool, shrink: bool) -> None:
    outcome = run_job(job, typer.echo if explain else None)
    if not explain:
        _tell(outcome, job)
    for name in sorted(unknown_names(job.keep, outcome.course)):
        say(f"--keep: the world of seed {job.seed} has no {name}")
    say(f"seed {job.seed}: hash {outcome.hash}, {outcome.events} events, {outcome.messages} messages, {KIND} kernel")
    if outcome.broken:
        if shrink and not explain:
            _shrink(outcome, job)
        raise typer.Exit(1)


def _show_many(seeds: range, processes: int, job: Job, minutes: float, record: Path | None, *, shrink: bool) -> None:
    begun_s = time.monotonic()
    end_s = begun_s + minutes * 60

    def wanted() -> Iterator[Job]:
        if not minutes:
            yield from (msgspec.structs.replace(job, seed=seed) for seed in seeds)
            return
        for seed in seeds_from(seeds.start):
            if time.monotonic() > end_s:
                return
            yield msgspec.structs.replace(job, seed=seed)

    # Read before the worlds run: they run the code as it is now.
    code = code_hash() if record is not None else ""
    broken: list[WorldOutcome] = []
    by_nodes: Counter[str] = Counter()
    count = events = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console, transient=True) as display:
        task = display.add_task("schedules", total=None if minutes else len(seeds))
        for outcome in run_jobs(wanted(), processes):
            count += 1
            events += outcome.events
            by_nodes[str(msgspec.structs.replace(job, seed=outcome.seed).node_count)] += 1
            if outcome.broken:
                broken.append(outcome)
                display.update(task, description=f"schedules, {len(broken)} failed")
                if len(broken) <= STORIES_MAX:
                    _tell(outcome, job)
            display.advance(task)
    taken_s = time.monotonic() - begun_s
    verdict = f"{len(broken)} failed" if broken else "no guarantee violated"
    say(f"{count} schedules, {events} events in {taken_s:.0f} s ({count / taken_s:.1f} per second): {verdict}")
    shrunk = _shrink(broken[0], job) if broken and shrink else None
    if record is not None:
        run = CampaignRun(
            date=time.strftime("%Y-%m-%d", time.gmtime()),
            version=__version__,
            kernel=KIND,
            world="log" if job.log else "broker",
            nodes=job.nodes,
            first_seed=seeds.start,
            schedules=count,
            seconds=round(taken_s),
            broken={str(outcome.seed): outcome.broken for outcome in broken},
            shrunk={} if shrunk is None else {str(shrunk.outcome.seed): " ".join(shrunk.job.keep.words())},
            code=code,
            by_nodes=dict(sorted(by_nodes.items())),
        )
        append(record, run)
        say(total_of(record, code).text())
    if broken:
        say(f"seeds: {', '.join(str(outcome.seed) for outcome in broken)}")
        raise typer.Exit(1)


def _tell(outcome: WorldOutcome, job: Job) -> None:
    if not outcome.broken:
        return
    say(f"seed {outcome.seed} (pandomq {__version__}, {KIND} kernel): {outcome.broken}")
    for line in outcome.story:
        say(f"  {line}")
    say(f"  {job.command(outcome.seed)} prints every event")


def _shrink(outcome: WorldOutcome, job: Job) -> Shrunk:
    with _console.status("shrinking") as status:
        shrunk = shrink_world(job, outcome, on_run=lambda runs, best: status.update(_smallest(runs, best)))
    say(f"seed {outcome.seed}, shrunk to {shrunk.summary()}: {shrunk.outcome.broken}")
    for line in shrunk.outcome.story:
        say(f"  {line}")
    say(f"  {shrunk.job.command(outcome.seed)} replays it and prints every event")
    return shrunk


def _smallest(runs: int, best: Reduction) -> str:
    clients, strikes = best.clients or (), best.strikes or ()
    return f"shrinking: {len(clients)} clients, {len(strikes)} fault strikes are left after {runs} runs"
