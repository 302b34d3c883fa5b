"""Chooses the worlds that `make test` runs: tests/sim/chosen_worlds.json.

    python -m tools.choose_worlds [--minutes 5] [--jobs 2]

The tool runs many seeds of each kind of world and notes for each what it reaches: the branches of the product
(`tools.branch_marks`), and which kind of fault struck right after which other, by the number of brokers. Then it picks,
greedily, the worlds that reach most new branches and pairs for the events they take, until the chosen worlds reach
everything that any world reached; then until each branch and each pair is reached by a second world, and so on, so that
rare ones are tried more than once. It stops at the budget of the kind: as many events as so many average worlds have
(`KINDS`), so that the tests take no longer than with other seeds.

A notes file keeps the measurements, as long as the source is the same: another run continues with further seeds, and
an interrupted run loses nothing. A world that violates a guarantee is never chosen; the tool names it and ends with 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tools.branch_marks import SOURCE, BranchMarks, install

if TYPE_CHECKING:
    from pandomq.sim.campaigns.campaign import Job

ROOT: Final = Path(__file__).parent.parent
CHOSEN: Final = ROOT / "tests" / "sim" / "chosen_worlds.json"
NOTES: Final = ROOT / "build" / "choose-worlds.jsonl"
FIRST_SEED: Final = 1_000
ROUNDS: Final = 10
"""The number of chosen worlds that reach each branch or pair, if there are so many and the budget allows it."""
AHEAD: Final = 2
"""The number of worlds that wait or run, for each process."""
TOLD_EVERY_S: Final = 30
"""The interval of progress messages."""


class Kind(NamedTuple):
    nodes: int
    """The number of brokers; 0 lets the seed choose."""
    log: bool
    budget: int
    """The budget of the chosen worlds: as many events as so many average worlds have."""
    share: float
    """The share of the time in which worlds are run."""


KINDS: Final = {
    "one_broker": Kind(1, log=False, budget=750, share=0.2),
    "brokers": Kind(0, log=False, budget=160, share=0.45),
    "fronts": Kind(3, log=False, budget=10, share=0.1),
    "logs": Kind(0, log=True, budget=560, share=0.25),
}
"""`brokers` are two to five; in `fronts` any broker serves."""


class Measured(NamedTuple):
    """The measurement of one world."""

    kind: str
    seed: int
    events: int
    seconds: float
    """Processor time."""
    branches: int
    """Bits, by the number of the branch."""
    pairs: tuple[str, ...]
    """Pairs of faults of which one struck after the other."""
    broken: str


# The processes that run worlds. They import the product only after its branches are marked.

_marks: BranchMarks | None = None


def prepare() -> None:
    global _marks
    _marks = install()
    # Imported once, here: branches that are taken while modules are loaded belong to no world.
    from pandomq.sim.campaigns.campaign import Job, run_job

    run_job(Job(0, nodes=3))
    _marks.take()


def measure(kind: str, seed: int) -> Measured | None:
    """Returns None if the seed's world is not of this kind."""
    from pandomq.sim.campaigns.campaign import NODES_DRAWN, run_job

    job = job_of(kind, seed)
    if job is None:
        return None
    assert _marks is not None
    _marks.take()
    begun_s = time.process_time()
    outcome = run_job(job)
    nodes = job.nodes or 1 + seed % NODES_DRAWN
    pairs = sorted({f"{nodes}: {one}, {other}" for one, other in pairwise(outcome.strikes)})
    seconds = round(time.process_time() - begun_s, 3)
    return Measured(kind, seed, outcome.events, seconds, _marks.take(), tuple(pairs), outcome.broken)


def job_of(kind: str, seed: int) -> Job | None:
    from pandomq.sim.campaigns.campaign import NODES_DRAWN, Job
    from pandomq.sim.cluster.world import serves_anywhere

    nodes, log, _, _ = KINDS[kind]
    if kind == "brokers" and not seed % NODES_DRAWN:
        return None
    if kind == "fronts" and not serves_anywhere(seed, nodes):
        return None
    return Job(seed, nodes, log)


# Notes.


def fingerprint() -> str:
    """Returns a hash of the source: measurements of another source are not valid."""
    digest = hashlib.blake2b(digest_size=16)
    for path in sorted(SOURCE.rglob("*.py")):
        digest.update(str(path.relative_to(SOURCE)).encode() + path.read_bytes())
    return digest.hexdigest()


def read_notes(path: Path, source: str) -> list[Measured]:
    """Returns the notes of the same source; an incomplete last line is ignored."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    if not lines or json.loads(lines[0]) != {"source": source}:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"source": source}) + "\n")
        return []
    if not lines[-1].endswith("\n"):
        lines.pop()
        path.write_text("".join(lines))
    found = []
    for line in lines[1:]:
        kind, seed, events, seconds, branches, pairs, broken = json.loads(line)
        found.append(Measured(kind, seed, events, seconds, int(branches, 16), tuple(pairs), broken))
    return found


def note_of(world: Measured) -> str:
    return json.dumps([*world[:4], f"{world.branches:x}", *world[5:]], separators=(",", ":")) + "\n"


# The run.


def next_seeds(worlds: Sequence[Measured], first: int) -> dict[str, int]:
    """Returns the first seed of each kind that has not been run."""
    return {kind: max((world.seed + 1 for world in worlds if world.kind == kind), default=first) for kind in KINDS}


def run_worlds(
    known: Sequence[Measured], *, first: int, jobs: int, go_on: Callable[[Counter[str]], Iterable[str]]
) -> Iterator[Measured]:
    """`go_on` receives the number of worlds of each kind that were run or are running, and returns the kinds that need
    more."""
    seeds = next_seeds(known, first)
    counts = Counter(world.kind for world in known)
    spent_s = dict.fromkeys(KINDS, 0.0)
    waiting: set[Future[Measured | None]] = set()
    asked: dict[Future[Measured | None], str] = {}
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), prepare) as pool:
        while True:
            wanted = list(go_on(counts))
            while wanted and len(waiting) < jobs * AHEAD:
                kind = min(wanted, key=lambda kind: spent_s[kind] / KINDS[kind].share)
                future = pool.submit(measure, kind, seeds[kind])
                seeds[kind] += 1
                counts[kind] += 1
                waiting.add(future)
                asked[future] = kind
                # A provisional value until the real time is known, so that kinds take turns.
                spent_s[kind] += 0.01
                wanted = list(go_on(counts))
            if not waiting:
                return
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for future in done:
                kind, world = asked.pop(future), future.result()
                if world is None:
                    counts[kind] -= 1
                else:
                    spent_s[kind] += world.seconds
                    yield world


# The choice.


def choose(worlds: Sequence[Measured], budget_events: float) -> list[Measured]:
    """Returns the worlds in the order of their value."""
    names = {name: bit for bit, name in enumerate(sorted({pair for world in worlds for pair in world.pairs}))}
    left = {world.seed: (world, _reached(world, names)) for world in sorted(worlds, key=lambda world: world.seed)}
    chosen: list[Measured] = []
    events = 0
    for _ in range(ROUNDS):
        missing = 0
        for _, reached in left.values():
            missing |= reached
        while missing:
            able = [(w, reached) for w, reached in left.values() if events + w.events <= budget_events]
            world, reached = max(able, key=lambda one: _gain(one, missing), default=(None, 0))
            if world is None or not reached & missing:
                break
            missing &= ~reached
            events += world.events
            chosen.append(world)
            del left[world.seed]
    return chosen


def _gain(one: tuple[Measured, int], missing: int) -> float:
    world, reached = one
    return (reached & missing).bit_count() / world.events


def _reached(world: Measured, names: dict[str, int]) -> int:
    bits = world.branches << len(names)
    for pair in world.pairs:
        bits |= 1 << names[pair]
    return bits


def figures(worlds: Sequence[Measured]) -> dict[str, Any]:
    """Returns how much these worlds reach together."""
    branches = 0
    for world in worlds:
        branches |= world.branches
    return {
        "worlds": len(worlds),
        "branches": branches.bit_count(),
        "pairs_of_faults": len({pair for world in worlds for pair in world.pairs}),
        "events": sum(world.events for world in worlds),
        "processor_seconds": round(sum(world.seconds for world in worlds), 1),
    }


def choose_all(worlds: Sequence[Measured]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, (nodes, log, budget, _) in KINDS.items():
        tried = [world for world in worlds if world.kind == kind]
        whole = [world for world in tried if not world.broken]
        mean_events = sum(world.events for world in whole) / max(1, len(whole))
        chosen = choose(whole, budget * mean_events)
        first = sorted(whole, key=lambda world: world.seed)[: len(chosen)]
        found[kind] = {
            "nodes": nodes,
            "log": log,
            "seeds": [world.seed for world in chosen],
            "chosen": figures(chosen),
            "first_as_many": figures(first),
            "tried": figures(tried),
        }
    return found


def write(path: Path, chosen: dict[str, Any]) -> None:
    """Writes short lines, so that a new choice changes only the lines of its kind."""
    text = json.dumps({"written_by": "tools/choose_worlds.py", **chosen}, indent=1)
    # The seeds are many, so several share a line.
    head, *rest = text.split('"seeds": [')
    parts = [head]
    for part in rest:
        seeds, _, after = part.partition("]")
        parts.append('"seeds": [' + " ".join(seeds.split()) + "]" + after)
    path.write_text("".join(parts) + "\n")


# The command.


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Choose the worlds that `make test` runs.")
    parser.add_argument("--minutes", type=float, default=5, help="Run worlds for this number of minutes (default 5).")
    parser.add_argument(
        "--worlds",
        type=int,
        default=0,
        help="Run until there are this number of worlds of each kind, instead of for some minutes.",
    )
    parser.add_argument("--jobs", type=int, default=2, help="Number of processes (default 2).")
    parser.add_argument("--first", type=int, default=FIRST_SEED, help=f"First seed to try (default {FIRST_SEED}).")
    parser.add_argument("--notes", type=Path, default=NOTES, help="File with earlier measurements.")
    parser.add_argument("--out", type=Path, default=CHOSEN, help="File for the chosen worlds.")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    end_s = time.monotonic() + options.minutes * 60

    def go_on(counts: Counter[str]) -> list[str]:
        if options.worlds:
            return [kind for kind in KINDS if counts[kind] < options.worlds]
        return list(KINDS) if time.monotonic() < end_s else []

    worlds = read_notes(options.notes, fingerprint())
    print(f"{len(worlds)} worlds were already measured with this source")
    told_s = time.monotonic()
    with options.notes.open("a") as notes:
        for world in run_worlds(worlds, first=options.first, jobs=options.jobs, go_on=go_on):
            worlds.append(world)
            notes.write(note_of(world))
            notes.flush()
            if time.monotonic() - told_s > TOLD_EVERY_S:
                told_s = time.monotonic()
                print(f"{len(worlds)} worlds measured, {max(0, end_s - told_s):.0f} s left", flush=True)
    chosen = choose_all(worlds)
    write(options.out, chosen)
    for kind, found in chosen.items():
        print(f"{kind}: {found['chosen']}\n    of all {found['tried']}\n    the first ones {found['first_as_many']}")
    broken = [world for world in worlds if world.broken]
    for world in broken:
        print(f"failed, and needs an examination: {world.kind} {world.seed}: {world.broken}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
