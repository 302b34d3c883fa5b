"""Plants known bugs into the simulated brokers.

    python -m tools.planted_bugs hunt              plants one bug after the other, runs the simulator until it finds the
                                                   bug, and writes the results into docs/planted-bugs.md
    python -m tools.planted_bugs hunt NAME …       these; the rows of the others stay as they are
    python -m tools.planted_bugs sim NAME …        runs simulated worlds with the bug, with options of `pandomq sim`

Ends with 1 if `hunt` did not find a bug, or if `sim` found a violated guarantee.
"""

from __future__ import annotations

import multiprocessing
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from pandomq.cli.sim import worlds
from tests.sim.planted.catalogue import PLANTED_BUGS
from tests.sim.planted.hunt import SEEDS_MAX, hunt, job_with
from tests.sim.planted.planted_bug import PlantedBug
from tools.generated_page import replace_between

PAGE: Final = Path(__file__).parent.parent / "docs" / "planted-bugs.md"
BEGIN: Final = "<!-- planted bugs: written by tools/planted_bugs.py -->"
END: Final = "<!-- end of planted bugs -->"
PROCESSES: Final = 2
HEAD: Final = "| planted bug | what it does | found after | violated guarantee | found by |\n" + "| --- " * 5 + "|\n"
NOT_FOUND: Final = f"not in {SEEDS_MAX}"

app = typer.Typer(no_args_is_help=True)

ONE_BROKER: Final = "In worlds with one broker:"
SEVERAL_BROKERS: Final = "In worlds with several brokers:"
LOGS: Final = "In worlds of logs:"

Row = tuple[str, str, str]
"""The number of schedules until it was found, the broken promise, and the file that found it."""
UNKNOWN: Final[Row] = ("not searched yet", "", "")


def title_of(bug: PlantedBug) -> str:
    if bug.log:
        return LOGS
    return ONE_BROKER if bug.nodes == 1 else SEVERAL_BROKERS


def read_rows(text: str) -> dict[str, Row]:
    """Returns the rows by name."""
    rows: dict[str, Row] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 5 and cells[0] in PLANTED_BUGS:
            rows[cells[0]] = (cells[2], cells[3], cells[4])
    return rows


def render(rows: dict[str, Row]) -> str:
    parts = [""]
    for title in (ONE_BROKER, SEVERAL_BROKERS, LOGS):
        lines = [
            f"| {name} | {bug.about} | {' | '.join(rows.get(name, UNKNOWN))} |\n"
            for name, bug in PLANTED_BUGS.items()
            if title_of(bug) == title
        ]
        parts.append(f"\n{title}\n\n{HEAD}{''.join(lines)}")
    return "\n".join(parts)


@app.command("hunt")
def hunt_command(
    names: Annotated[list[str] | None, typer.Argument(help="Names of planted bugs. All of them by default.")] = None,
) -> None:
    """Plant one bug after the other, and check that the simulator finds it."""
    wanted = [_checked(name) for name in names or PLANTED_BUGS]
    missed: list[str] = []
    with multiprocessing.get_context("spawn").Pool(PROCESSES) as pool:
        for catch in pool.imap(hunt, wanted):
            found = str(catch.schedules or NOT_FOUND)
            # A bar would end the cell.
            seen_by = catch.seen_by.replace("|", "/")
            print(f"{catch.name:30} {found:>12}  {catch.promise}  ({seen_by})", flush=True)
            _write(catch.name, (found, catch.promise, seen_by))
            if not catch.schedules:
                missed.append(catch.name)
    if missed:
        print(f"planted bugs not found: {', '.join(missed)}")
        raise typer.Exit(1)


def _checked(name: str) -> str:
    if name not in PLANTED_BUGS:
        raise typer.BadParameter(f"planted bug {name!r} does not exist: known are {', '.join(PLANTED_BUGS)}")
    return name


def _write(name: str, row: Row) -> None:
    """Writes each row at once, so that an interrupted run keeps its results."""
    text = PAGE.read_text()
    PAGE.write_text(replace_between(text, BEGIN, END, render({**read_rows(text), name: row})))


@app.command("sim")
def sim_command(
    name: Annotated[str, typer.Argument(callback=_checked, help="Name of the planted bug.")],
    seeds: Annotated[str, typer.Option(help="Range of seeds to simulate, as 1..500.")] = "1..200",
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes to run in parallel.")] = PROCESSES,
    nodes: Annotated[
        int | None, typer.Option(min=0, max=7, help="Number of brokers, or of logs, per world. The bug has a default.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Simulate only the world of this seed.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print every event. Used with --seed.")] = False,
    traced: Annotated[bool, typer.Option("--traced", help="Trace messages in the simulated brokers.")] = False,
    record: Annotated[Path | None, typer.Option(help="Append a line of JSON about the run to this file.")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="Simulate only this part of the world.")] = None,
    shrink: Annotated[bool, typer.Option(help="Shrink the first failing world, and show what is left of it.")] = True,
) -> None:
    """Simulate worlds with a planted bug, and show the guarantees that it violates."""
    worlds.run(
        msgspec.structs.replace(job_with(name, nodes=nodes), traced=traced),
        seeds=seeds,
        processes=jobs,
        seed=seed,
        explain=explain,
        minutes=0,
        record=record,
        keep=keep or [],
        shrink=shrink,
    )


if __name__ == "__main__":
    app()
