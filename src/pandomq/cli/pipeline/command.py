"""`pandomq pipeline`: jobs on Spark, which are brought in when they are asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

pipeline_app = typer.Typer(
    name="pipeline", help="Jobs on Spark: on this machine, or on a cluster.", no_args_is_help=True
)

Master = Annotated[str, typer.Option(help="Spark's master, as spark://host:7077.")]
Json = Annotated[Path | None, typer.Option("--json", help="Write the summary to this file, as JSON.")]
Report = Annotated[Path | None, typer.Option(help="Write a report with plots to this file, as HTML.")]


@pipeline_app.command()
def simulate(
    seeds: Annotated[str, typer.Option(help="Which worlds: first and last seed, as 1..500.")] = "1..200",
    nodes: Annotated[int, typer.Option(min=0, max=7, help="Brokers, or logs, in each world; 0: one to five.")] = 0,
    log: Annotated[bool, typer.Option("--log", help="The replicated log alone, without brokers on it.")] = False,
    mutant: Annotated[str, typer.Option(help="With this planted bug; `pandomq sim --mutants` lists them.")] = "",
    master: Master = "local[*]",
    json: Json = None,
    report: Report = None,
) -> None:
    """Run the simulator's seeds on Spark's executors. Ends with 1 if a promise was broken."""
    from pandomq.cli.pipeline import simulate_job

    simulate_job.run(seeds=seeds, nodes=nodes, log=log, mutant=mutant, master=master, json=json, report=report)
