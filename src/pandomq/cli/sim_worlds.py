"""Runs simulated worlds for `pandomq sim`, and shows what went wrong in which.

Ends with 1 if a promise was broken, or a planted bug not found.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pandomq import __version__
from pandomq.cli.failures import Refused, WrongUse
from pandomq.cli.output import say
from pandomq.kernel import KIND
from pandomq.sim.campaign import Catch, Job, hunt, run_job, run_jobs, seeds_from
from pandomq.sim.mutations.catalogue import MUTATIONS
from pandomq.sim.outcome import Outcome

_console = Console(stderr=True)
STORIES_MAX = 3
"""Told in full; of the others the seeds."""


def run(
    *,
    seeds: str,
    jobs: int,
    nodes: int,
    log: bool,
    seed: int | None,
    explain: bool,
    traced: bool,
    mutant: str,
    mutants: bool,
    minutes: float,
    record: Path | None,
) -> None:
    """As `pandomq sim` was asked."""
    if mutant and mutant not in MUTATIONS:
        raise WrongUse(f"there is no planted bug {mutant!r}: known are {', '.join(MUTATIONS)}")
    if mutants:
        _show_catches(jobs)
    elif seed is not None:
        _show_one(Job(seed, nodes, log, mutant, traced=traced), explain=explain)
    else:
        _show_many(seed_range(seeds), jobs, Job(0, nodes, log, mutant, traced=traced), minutes, record)


def seed_range(text: str) -> range:
    first, dots, last = text.partition("..")
    try:
        found = range(int(first), int(last if dots else first) + 1)
    except ValueError:
        found = range(0)
    if not found:
        raise WrongUse(f"seeds are given as 1..500, not as {text!r}")
    return found


def _show_one(job: Job, *, explain: bool) -> None:
    outcome = run_job(job, typer.echo if explain else None)
    if not explain:
        _tell(outcome, job)
    say(f"seed {job.seed}: hash {outcome.hash}, {outcome.events} events, {outcome.messages} messages, {KIND} kernel")
    if outcome.broken:
        raise typer.Exit(1)


def _show_many(seeds: range, processes: int, job: Job, minutes: float, record: Path | None) -> None:
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

    broken: list[Outcome] = []
    count = events = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=_console, transient=True) as display:
        task = display.add_task("schedules", total=None if minutes else len(seeds))
        for outcome in run_jobs(wanted(), processes):
            count += 1
            events += outcome.events
            if outcome.broken:
                broken.append(outcome)
                display.update(task, description=f"schedules, {len(broken)} broken")
                if len(broken) <= STORIES_MAX:
                    _tell(outcome, job)
            display.advance(task)
    taken_s = time.monotonic() - begun_s
    verdict = f"{len(broken)} broken" if broken else "no promise broken"
    say(f"{count} schedules, {events} events in {taken_s:.0f} s ({count / taken_s:.1f} a second): {verdict}")
    if record is not None:
        _record(record, seeds.start, count, job, taken_s, broken)
    if broken:
        say(f"seeds: {', '.join(str(outcome.seed) for outcome in broken)}")
        raise typer.Exit(1)


def _tell(outcome: Outcome, job: Job) -> None:
    if not outcome.broken:
        return
    say(f"seed {outcome.seed} (pandomq {__version__}, {KIND} kernel): {outcome.broken}")
    for line in outcome.story:
        say(f"  {line}")
    say(f"  {job.command(outcome.seed)} tells everything")


def _record(path: Path, first: int, count: int, job: Job, taken_s: float, broken: list[Outcome]) -> None:
    line = {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "version": __version__,
        "kernel": KIND,
        "world": "log" if job.log else "broker",
        "nodes": job.nodes,
        "first_seed": first,
        "schedules": count,
        "seconds": round(taken_s),
        "broken": {str(outcome.seed): outcome.broken for outcome in broken},
    }
    with path.open("ab") as file:
        file.write(msgspec.json.encode(line) + b"\n")


def _show_catches(processes: int) -> None:
    catches: list[Catch] = []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        multiprocessing.get_context("spawn").Pool(processes) as pool,
        Progress(*columns, console=_console, transient=True) as display,
    ):
        task = display.add_task("planted bugs", total=len(MUTATIONS))
        for catch in pool.imap(hunt, MUTATIONS):
            catches.append(catch)
            display.advance(task)
    table = Table("planted bug", "what it does", "found after", "as a breach of", "seen by")
    for catch in catches:
        table.add_row(catch.name, catch.about, str(catch.schedules or "not found"), catch.promise, catch.seen_by)
    Console().print(table)
    missed = [catch.name for catch in catches if not catch.schedules]
    if missed:
        raise Refused(f"not found: {', '.join(missed)}")
