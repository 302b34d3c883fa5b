"""Runs clusters of real brokers under load and faults: every case repeatedly, in an order that the seed determines.

    tools/torture.py                             each case once, with a seed that is drawn and printed
    tools/torture.py --rounds 200 --seed 7
    tools/torture.py --only kill_root --only cut_root
    tools/torture.py --only reconnect_storm      10,000 clients; only on request
    tools/torture.py --only storm_of_proxied     the same, where any broker serves

A round is one case: clients at work, a fault, its end, and the account, which must balance. Without root the cases that
need it are left out, and the summary says so. A failure keeps the brokers' logs, and makes the exit code 1.
"""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.integration.cluster.alone_cases import CASES_ALONE, CASES_ON_REQUEST  # noqa: E402
from tests.integration.cluster.cluster import Cluster  # noqa: E402
from tests.integration.cluster.scene import Case, play  # noqa: E402
from tests.integration.cluster.stages import STAGES, Stage  # noqa: E402

OUT = ROOT / "build" / "torture"
QUEUES: list[dict[str, Any]] = [{}, {"x-queue-type": "quorum"}]
console = Console(stderr=True)


class Torture:
    """Runs rounds, and records their results."""

    def __init__(self, seed: int, only: list[str], progress: Progress) -> None:
        self._seed = seed
        self._only = only
        self._progress = progress
        self._bar = progress.add_task("", total=0)
        self.rounds: list[dict[str, Any]] = []
        self.left_out: dict[str, str] = {stage.name: reason for stage in STAGES if (reason := stage.missing())}

    def run(self, rounds: int) -> None:
        """Runs so many rounds; 0 for each case once."""
        stages = [stage for stage in STAGES if stage.name not in self.left_out]
        alone = self._wanted(CASES_ALONE) + [case for case in CASES_ON_REQUEST if case.__name__ in self._only]
        once = sum(len(self._wanted(stage.cases)) for stage in stages) + len(alone)
        assert once, f"there is no such case: {self._only}"
        total = rounds or once
        self._progress.update(self._bar, total=total)
        turn = 0
        while len(self.rounds) < total:
            chance = Random(f"{self._seed} {turn}")
            for stage in stages:
                cases = self._wanted(stage.cases)
                chance.shuffle(cases)
                self._play(stage, cases[: total - len(self.rounds)], chance)
            for case in alone[: total - len(self.rounds)]:
                self._round(case.__name__, lambda directory, case=case: case(directory))
            turn += 1

    def _wanted(self, cases: list[Any]) -> list[Any]:
        return [case for case in cases if not self._only or case.__name__ in self._only]

    def _play(self, stage: Stage, cases: list[Case], chance: Random) -> None:
        """Uses one cluster for all cases; after a failure, when the cluster may be in any state, the remaining cases
        get a new one."""
        while cases:
            with self._directory(stage.name) as directory:
                if not self._open(stage, directory, cases, chance):
                    continue
                return

    def _open(self, stage: Stage, directory: Path, cases: list[Case], chance: Random) -> bool:
        """Removes the cases that it has run from the list; returns False if one failed."""
        begin, name = time.monotonic(), f"opening {stage.name}"
        try:
            with stage.open(directory) as cluster:
                while cases:
                    case = cases.pop(0)
                    begin, name = time.monotonic(), case.__name__
                    self._announce(name)
                    self._passed(name, begin, self._played(case, cluster, chance))
                begin, name = time.monotonic(), f"closing {stage.name}"
        except Exception as error:
            self._failed(name, begin, error, directory)
            return False
        return True

    def _played(self, case: Case, cluster: Cluster, chance: Random) -> dict[str, Any]:
        arguments = chance.choice(QUEUES)
        outcome = play(case, cluster, Random(chance.random()), arguments)
        return outcome.summary | {"notes": outcome.notes, "queues": arguments}

    def _round(self, name: str, run: Any) -> None:
        begin = time.monotonic()
        self._announce(name)
        with self._directory(name) as directory:
            try:
                self._passed(name, begin, run(directory))
            except Exception as error:
                self._failed(name, begin, error, directory)

    # Records.

    def _announce(self, name: str) -> None:
        self._progress.update(self._bar, description=name)

    def _passed(self, name: str, begin: float, facts: dict[str, Any]) -> None:
        self._note({"case": name, "passed": True, "seconds": round(time.monotonic() - begin, 1), **facts})
        console.print(f"{name}: {json.dumps(facts)}", highlight=False, soft_wrap=True)

    def _failed(self, name: str, begin: float, error: Exception, directory: Path) -> None:
        kept = OUT / f"failure-{self._seed}-{len(self.rounds) + 1}-{name.replace(' ', '-')}"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for log in directory.rglob("log"):
            shutil.copy(log, kept / f"{'-'.join(log.relative_to(directory).parts[:-1])}.log")
        (kept / "failure.txt").write_text("".join(traceback.format_exception(error)))
        reason = str(error).split("\n")[0][:500]
        console.print(f"[red]FAILED[/red] {name}: {reason}; see {kept.relative_to(ROOT)}", highlight=False)
        seconds = round(time.monotonic() - begin, 1)
        self._note({"case": name, "passed": False, "seconds": seconds, "reason": reason, "kept": str(kept)})

    def _note(self, entry: dict[str, Any]) -> None:
        self.rounds.append(entry)
        self._progress.update(self._bar, advance=1)

    @contextlib.contextmanager
    def _directory(self, name: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix=f"pandomq-torture-{name.replace(' ', '-')}-") as directory:
            yield Path(directory)


def summarized(torture: Torture, seed: int, seconds: float) -> dict[str, Any]:
    pauses: dict[str, float] = {}
    for entry in torture.rounds:
        for queue, pause_s in entry.get("longest_pause_s", {}).items():
            key = f"{entry['case']} {queue.rpartition('.')[2]}"
            pauses[key] = max(pause_s, pauses.get(key, 0.0))
    return {
        "seed": seed,
        "rounds": len(torture.rounds),
        "failed": sum(not entry["passed"] for entry in torture.rounds),
        "seconds": round(seconds, 1),
        "confirmed": sum(entry.get("confirmed", 0) for entry in torture.rounds),
        "longest_pauses_s": pauses,
        "left_out": torture.left_out,
        "each": torture.rounds,
    }


def main(
    rounds: Annotated[int, typer.Option(min=0, help="Number of cases to run. 0 runs each case once.")] = 0,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the order and of all choices. Without it, a seed is drawn.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Run only this case. The option is repeatable.")] = None,
    summary: Annotated[Path, typer.Option(help="File for the JSON summary.")] = OUT / "summary.json",
) -> None:
    """Torments clusters from a seed; exit code 1 if a guarantee was violated."""
    chosen = secrets.randbelow(2**32) if seed is None else seed
    console.print(f"seed {chosen}", highlight=False)
    # Clients log many lost connections, which are expected here.
    logging.disable(logging.CRITICAL)
    begin = time.monotonic()
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as progress:
        torture = Torture(chosen, only or [], progress)
        for stage, reason in torture.left_out.items():
            console.print(f"skipped: {stage}: {reason}", highlight=False)
        try:
            torture.run(rounds)
        finally:
            result = summarized(torture, chosen, time.monotonic() - begin)
            summary.parent.mkdir(parents=True, exist_ok=True)
            summary.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps({key: value for key, value in result.items() if key != "each"}))
    raise typer.Exit(1 if result["failed"] else 0)


if __name__ == "__main__":
    typer.run(main)
