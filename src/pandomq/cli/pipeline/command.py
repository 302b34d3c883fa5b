"""`pandomq pipeline`: jobs on Spark, which are brought in when they are asked for."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

pipeline_app = typer.Typer(
    name="pipeline", help="Jobs on Spark: on this machine, or on a cluster.", no_args_is_help=True
)


class LakeForm(StrEnum):
    PARQUET = "parquet"
    DELTA = "delta"


def _in_a_directory(path: Path | None) -> Path | None:
    """It is written after all the work: better to know before."""
    if path is not None and not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no directory {path.parent}")
    return path


Master = Annotated[str, typer.Option(help="Spark's master, as spark://host:7077.")]
Json = Annotated[
    Path | None, typer.Option("--json", callback=_in_a_directory, help="Write the summary to this file, as JSON.")
]
Report = Annotated[
    Path | None, typer.Option(callback=_in_a_directory, help="Write a report with plots to this file, as HTML.")
]


@pipeline_app.command()
def simulate(
    seeds: Annotated[str, typer.Option(help="Which worlds: first and last seed, as 1..500.")] = "1..200",
    nodes: Annotated[int, typer.Option(min=0, max=7, help="Brokers, or logs, in each world; 0: one to five.")] = 0,
    log: Annotated[bool, typer.Option("--log", help="The replicated log alone, without brokers on it.")] = False,
    mutant: Annotated[str, typer.Option(help="With this planted bug; `pandomq sim --mutants` lists them.")] = "",
    notes: Annotated[
        Path | None,
        typer.Option(
            callback=_in_a_directory, help="A file for notes: a campaign that was broken off goes on with it."
        ),
    ] = None,
    master: Master = "local[*]",
    json: Json = None,
    report: Report = None,
) -> None:
    """Run the simulator's seeds on Spark's executors. Ends with 1 if a promise was broken."""
    from pandomq.cli.pipeline import simulate_job

    simulate_job.run(
        seeds=seeds, nodes=nodes, log=log, mutant=mutant, notes=notes, master=master, json=json, report=report
    )


Url = Annotated[
    str,
    typer.Option(envvar="PANDOMQ_AMQP_URL", help="Where the brokers are: amqp://user:password@host1,host2/vhost."),
]
LakeDirectory = Annotated[Path, typer.Argument(help="The lake's directory.")]


@pipeline_app.command()
def archive(
    lake: LakeDirectory,
    url: Url = "amqp://guest:guest@127.0.0.1:5672/%2F",
    streams: Annotated[str, typer.Option(help="Which streams, as a regular expression; also those to come.")] = ".*",
    once: Annotated[bool, typer.Option("--once", help="End when all that is there now is archived.")] = False,
    every: Annotated[float, typer.Option(min=0.0, help="Seconds between two batches.")] = 10.0,
    form: Annotated[LakeForm, typer.Option("--format", help="Parquet files, or these as a Delta table.")] = (
        LakeForm.PARQUET
    ),
    name: Annotated[str, typer.Option(help="Brokers are told by this name how far the archive has come.")] = "archive",
    allow_loss: Annotated[
        bool, typer.Option("--allow-loss", help="Go on if a stream was deleted, or has dropped what was not archived.")
    ] = False,
    master: Master = "local[*]",
    json: Json = None,
    report: Report = None,
) -> None:
    """Copy streams to a lake of Parquet files, each row once; until it is interrupted."""
    from pandomq.cli.pipeline import lake_jobs
    from pandomq.pipeline.archive import Wish

    wish = Wish(url, streams, every, once, name, allow_loss)
    lake_jobs.run_archive(wish, lake, form is LakeForm.DELTA, master, json, report)


class Window(StrEnum):
    """Lengths of windows that a rollup has; all of them are written."""

    TEN_SECONDS = "10s"
    MINUTE = "1m"
    HOUR = "1h"


@pipeline_app.command()
def rollup(
    lake: LakeDirectory,
    url: Annotated[
        list[str] | None,
        typer.Option(envvar="PANDOMQ_AMQP_URL", help="Where the brokers are; once for each vhost that is traced."),
    ] = None,
    window: Annotated[Window, typer.Option(help="Which windows the tables and the report show.")] = Window.TEN_SECONDS,
    once: Annotated[bool, typer.Option("--once", help="End when all that is there now is rolled up.")] = False,
    every: Annotated[float, typer.Option(min=0.0, help="Seconds between two steps.")] = 10.0,
    lateness: Annotated[float, typer.Option(min=0.0, help="Seconds that a window waits for late events.")] = 30.0,
    master: Master = "local[*]",
    json: Json = None,
    report: Report = None,
) -> None:
    """Rates, latencies, dead letters and more of traced vhosts, by windows; until it is interrupted."""
    from pandomq.cli.pipeline import rollup_job
    from pandomq.pipeline.rollup.job import Wish

    urls = tuple(url or ["amqp://guest:guest@127.0.0.1:5672/%2F"])
    rollup_job.run(lake, Wish(urls, every, once, lateness), window.value, master, json, report)


@pipeline_app.command()
def compact(lake: LakeDirectory, master: Master = "local[*]", json: Json = None, report: Report = None) -> None:
    """Make few large files of a lake's many small ones."""
    from pandomq.cli.pipeline import lake_jobs

    lake_jobs.run_compact(lake, master, json, report)


@pipeline_app.command()
def replay(
    lake: LakeDirectory,
    url: Url = "amqp://guest:guest@127.0.0.1:5672/%2F",
    exchange: Annotated[str | None, typer.Option(help="Publish to this exchange, with the original keys.")] = None,
    to_stream: Annotated[str | None, typer.Option(help="Publish to this stream.")] = None,
    name: Annotated[str | None, typer.Option(help="Of the replay; one that was broken off goes on under it.")] = None,
    streams: Annotated[str, typer.Option(help="Of which streams, as a regular expression.")] = ".*",
    first_offset: Annotated[int | None, typer.Option("--from-offset", help="From this offset on.")] = None,
    end_offset: Annotated[int | None, typer.Option("--to-offset", help="Before this offset.")] = None,
    first_time: Annotated[
        str | None, typer.Option("--from-time", help="From this time on, as 2026-11-16T04:30.")
    ] = None,
    end_time: Annotated[str | None, typer.Option("--to-time", help="Before this time.")] = None,
    where: Annotated[str, typer.Option(help="A condition in SQL: routing_key LIKE 'a.%'.")] = "",
    rate: Annotated[float, typer.Option(min=0.0, help="Rows a second; 0: as fast as it goes.")] = 0.0,
    factor: Annotated[float, typer.Option(min=0.0, help="Original spacing, so many times as fast.")] = 0.0,
    master: Master = "local[*]",
    json: Json = None,
    report: Report = None,
) -> None:
    """Publish what is in a lake again, each row once."""
    from pandomq.cli.pipeline import lake_jobs
    from pandomq.pipeline.replay_plan import Pace, Selection

    target = {"url": url, "exchange": exchange, "stream": to_stream}
    selection = Selection(
        streams, first_offset, end_offset, lake_jobs.micros(first_time), lake_jobs.micros(end_time), where
    )
    lake_jobs.run_replay(
        lake,
        {key: value for key, value in target.items() if value is not None},
        name,
        selection,
        Pace(rate, factor),
        master=master,
        json=json,
        report=report,
    )


@pipeline_app.command()
def audit(
    data: Annotated[list[Path], typer.Option(help="A broker's data directory, or its store; of each broker one.")],
    ledger: Annotated[
        list[Path] | None, typer.Option(help="What a publisher or consumer wrote down; of each of them one.")
    ] = None,
    first: Annotated[str | None, typer.Option("--from", help="Judge from this time on, as 2026-11-16T04:30.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="Judge before this time.")] = None,
    tolerance: Annotated[float, typer.Option(min=0.0, help="Seconds by which clocks may differ.")] = 5.0,
    notes: Annotated[
        Path | None, typer.Option(help="A directory for notes: an audit that was broken off goes on with them.")
    ] = None,
    master: Master = "local[*]",
    json: Json = None,
    report: Report = None,
) -> None:
    """Prove or refute from brokers' logs and clients' ledgers that promises were kept.

    Ends with 0 if all of them are proven, with 1 if one is refuted, with 3 if none is, but not all could be judged.
    """
    from pandomq.cli.pipeline import audit_job

    audit_job.run(
        data,
        ledger or [],
        first=first,
        end=end,
        tolerance_s=tolerance,
        notes=notes,
        master=master,
        json=json,
        report=report,
    )
