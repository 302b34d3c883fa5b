"""`pandomq sim`: simulated worlds from seeds. They take a whole broker, which is brought in when it is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def sim(
    seeds: Annotated[str, typer.Option(help="Which worlds: first and last seed, as 1..500.")] = "1..200",
    jobs: Annotated[int, typer.Option(min=1, help="Processes.")] = 2,
    nodes: Annotated[int, typer.Option(min=0, max=7, help="Brokers, or logs, in each world; 0: one to five.")] = 1,
    log: Annotated[bool, typer.Option("--log", help="The replicated log alone, without brokers on it.")] = False,
    seed: Annotated[int | None, typer.Option(help="One world only.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="With --seed: tell everything that happens.")] = False,
    traced: Annotated[bool, typer.Option("--traced", help="Brokers trace what happens to messages.")] = False,
    mutant: Annotated[str, typer.Option(help="With this planted bug; see --mutants.")] = "",
    mutants: Annotated[bool, typer.Option("--mutants", help="Plant one bug after the other and see it found.")] = False,
    minutes: Annotated[float, typer.Option(help="Go on for so long, from the first of the seeds on.")] = 0,
    record: Annotated[Path | None, typer.Option(help="Append a line about the run to this file, as JSON.")] = None,
) -> None:
    """Simulate brokers, clients, disks and clocks from seeds, and check every promise."""
    # Imported here because it brings the whole broker with it, for which the other commands should not wait.
    from pandomq.cli import sim_worlds

    sim_worlds.run(
        seeds=seeds,
        jobs=jobs,
        nodes=nodes,
        log=log,
        seed=seed,
        explain=explain,
        traced=traced,
        mutant=mutant,
        mutants=mutants,
        minutes=minutes,
        record=record,
    )
