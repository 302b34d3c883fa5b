"""`pandomq sim`: simulated worlds from seeds. They need a whole broker, which is imported only when the command
runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def sim(
    seeds: Annotated[str, typer.Option(help="Range of seeds to simulate, as 1..500.")] = "1..200",
    jobs: Annotated[int, typer.Option(min=1, help="Number of processes to run in parallel.")] = 2,
    nodes: Annotated[
        int, typer.Option(min=0, max=7, help="Number of brokers, or of logs, per world. 0 varies it from one to five.")
    ] = 1,
    log: Annotated[bool, typer.Option("--log", help="Simulate the replicated log alone, without brokers.")] = False,
    seed: Annotated[int | None, typer.Option(help="Simulate only the world of this seed.")] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Print every event. Used with --seed.")] = False,
    traced: Annotated[bool, typer.Option("--traced", help="Trace messages in the simulated brokers.")] = False,
    minutes: Annotated[
        float,
        typer.Option(help="Run for this number of minutes, from the first seed on. 0: run the seeds of --seeds."),
    ] = 0,
    record: Annotated[Path | None, typer.Option(help="Append a line of JSON about the run to this file.")] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Simulate only this part of the world, as features=…, clients=…, machines=…, strikes=3,7-9, "
                "faults-ms=420. Used with --seed."
            )
        ),
    ] = None,
    shrink: Annotated[
        bool, typer.Option(help="Shrink the first failing world for at most a minute, and show what is left of it.")
    ] = True,
) -> None:
    """Simulate brokers, clients, disks and clocks from seeds, and check every guarantee.

    A world is one simulated run of brokers, clients and disks, determined by its seed.
    """
    # Imported here because it imports the whole broker, for which the other commands should not wait.
    from pandomq.cli.sim import worlds
    from pandomq.sim.campaigns.campaign import Job

    worlds.run(
        Job(0, nodes, log, traced=traced),
        seeds=seeds,
        processes=jobs,
        seed=seed,
        explain=explain,
        minutes=minutes,
        record=record,
        keep=keep or [],
        shrink=shrink,
    )
