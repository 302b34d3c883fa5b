"""`pandomq pipeline`: jobs on Spark, which are imported only when they run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pandomq.cli.pipeline.job_options import JobOptions, in_a_directory
from pandomq.cli.shared_options import takes

pipeline_app = typer.Typer(
    name="pipeline", help="Run jobs on Spark, on this machine or on a cluster.", no_args_is_help=True
)


class LakeForm(StrEnum):
    PARQUET = "parquet"
    DELTA = "delta"


@pipeline_app.command()
@takes(JobOptions, last=True)
def simulate(
    job: JobOptions,
    seeds: Annotated[str, typer.Option(help="Range of seeds to simulate, as 1..500.")] = "1..200",
    nodes: Annotated[
        int, typer.Option(min=0, max=7, help="Number of brokers, or of logs, per world. 0 varies it from one to five.")
    ] = 0,
    log: Annotated[bool, typer.Option("--log", help="Simulate the replicated log alone, without brokers.")] = False,
    notes: Annotated[
        Path | None,
        typer.Option(callback=in_a_directory, help="Progress file. A campaign that was interrupted resumes from it."),
    ] = None,
) -> None:
    """Simulate worlds from seeds on Spark's executors. The exit status is 1 if a guarantee was violated."""
    from pandomq.cli.pipeline import simulate_job

    simulate_job.run(job, seeds=seeds, nodes=nodes, log=log, notes=notes)


Url = Annotated[
    str,
    typer.Option(
        envvar="PANDOMQ_AMQP_URL", help="Addresses of the brokers, as amqp://user:password@host1,host2/vhost."
    ),
]
LakeDirectory = Annotated[Path, typer.Argument(help="Directory of the lake.")]


@pipeline_app.command()
@takes(JobOptions, last=True)
def archive(
    job: JobOptions,
    lake: LakeDirectory,
    url: Url = "amqp://guest:guest@127.0.0.1:5672/%2F",
    streams: Annotated[
        str,
        typer.Option(
            help="Regular expression for the streams to archive. It also applies to streams that are created later."
        ),
    ] = ".*",
    once: Annotated[bool, typer.Option("--once", help="Archive all messages that are present now, and exit.")] = False,
    every: Annotated[float, typer.Option(min=0.0, help="Seconds between the starts of two batches.")] = 10.0,
    form: Annotated[
        LakeForm, typer.Option("--format", help="Format of the lake: Parquet files, or also a Delta table of them.")
    ] = (LakeForm.PARQUET),
    name: Annotated[
        str, typer.Option(help="Name of the archive, under which its progress is stored on the brokers.")
    ] = "archive",
    allow_loss: Annotated[
        bool,
        typer.Option(
            "--allow-loss", help="Continue if a stream was deleted, or has dropped messages that were not archived."
        ),
    ] = False,
) -> None:
    """Copy streams to a lake, a directory of Parquet files or a Delta table, each message once. ^C ends the job after
    the current batch.
    """
    from pandomq.cli.pipeline import lake_jobs
    from pandomq.pipeline.archive import ArchiveOptions

    options = ArchiveOptions(url, streams, every, once, name, allow_loss)
    lake_jobs.run_archive(job, options, lake, form is LakeForm.DELTA)


class WindowLength(StrEnum):
    """Lengths of windows in a rollup; all of them are written."""

    TEN_SECONDS = "10s"
    MINUTE = "1m"
    HOUR = "1h"


@pipeline_app.command()
@takes(JobOptions, last=True)
def rollup(
    job: JobOptions,
    lake: LakeDirectory,
    url: Annotated[
        list[str] | None,
        typer.Option(
            envvar="PANDOMQ_AMQP_URL",
            help=(
                "Addresses of the brokers, as amqp://user:password@host1,host2/vhost. Repeat the option for each "
                "traced vhost. Without it: the broker on this machine, vhost /, as guest."
            ),
        ),
    ] = None,
    window: Annotated[
        WindowLength, typer.Option(help="Length of the windows in tables and reports. All lengths are computed.")
    ] = WindowLength.TEN_SECONDS,
    once: Annotated[bool, typer.Option("--once", help="Process all events that are present now, and exit.")] = False,
    every: Annotated[float, typer.Option(min=0.0, help="Seconds between two steps.")] = 10.0,
    lateness: Annotated[
        float,
        typer.Option(
            min=0.0, help="Time that a window waits for late events, in seconds. Later ones are only counted as late."
        ),
    ] = 30.0,
) -> None:
    """Compute rates, latencies, dead letters and more of traced vhosts per window, until it is interrupted."""
    from pandomq.cli.pipeline import rollup_job
    from pandomq.pipeline.rollup.job import RollupOptions

    urls = tuple(url or ["amqp://guest:guest@127.0.0.1:5672/%2F"])
    rollup_job.run(job, lake, RollupOptions(urls, every, once, lateness), window.value)


@pipeline_app.command()
@takes(JobOptions, last=True)
def compact(job: JobOptions, lake: LakeDirectory) -> None:
    """Merge the many small files of a lake into few large ones."""
    from pandomq.cli.pipeline import lake_jobs

    lake_jobs.run_compact(job, lake)


@pipeline_app.command()
@takes(JobOptions, last=True)
def replay(
    job: JobOptions,
    lake: LakeDirectory,
    url: Url = "amqp://guest:guest@127.0.0.1:5672/%2F",
    exchange: Annotated[
        str | None,
        typer.Option(help="Publish to this exchange, with the original routing keys. Needed without --to-stream."),
    ] = None,
    to_stream: Annotated[str | None, typer.Option(help="Publish to this stream, in place of an exchange.")] = None,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the replay. An interrupted replay resumes under the same name. Without it: a new name, which "
            "the report shows."
        ),
    ] = None,
    streams: Annotated[str, typer.Option(help="Regular expression for the streams to replay.")] = ".*",
    first_offset: Annotated[
        int | None, typer.Option("--from-offset", help="Replay from this offset on, inclusive.")
    ] = None,
    end_offset: Annotated[int | None, typer.Option("--to-offset", help="Replay up to this offset, exclusive.")] = None,
    first_time: Annotated[
        str | None, typer.Option("--from-time", help="Replay from this time on (UTC), as 2026-11-16T04:30.")
    ] = None,
    end_time: Annotated[str | None, typer.Option("--to-time", help="Replay messages before this time (UTC).")] = None,
    where: Annotated[
        str, typer.Option(help="Condition in SQL that rows must meet, for example routing_key LIKE 'a.%'.")
    ] = "",
    rate: Annotated[float, typer.Option(min=0.0, help="Maximum number of rows per second. 0 means no limit.")] = 0.0,
    factor: Annotated[
        float,
        typer.Option(min=0.0, help="Keep the original intervals between rows, divided by this factor. 0 ignores them."),
    ] = 0.0,
    unroutable: Annotated[
        str | None,
        typer.Option(help="Treatment of rows that no queue accepts: fail (default with --exchange), count or ignore."),
    ] = None,
) -> None:
    """Publish the rows of a lake again, each row once."""
    from pandomq.cli.pipeline import lake_jobs
    from pandomq.pipeline.replay_plan import Pace, Selection

    target = {"url": url, "exchange": exchange, "stream": to_stream, "unroutable": unroutable}
    selection = Selection(
        streams, first_offset, end_offset, lake_jobs.micros(first_time), lake_jobs.micros(end_time), where
    )
    given = {key: value for key, value in target.items() if value is not None}
    lake_jobs.run_replay(job, lake, given, name, selection, Pace(rate, factor))


@pipeline_app.command()
@takes(JobOptions, last=True)
def audit(
    job: JobOptions,
    data: Annotated[
        list[Path], typer.Option(help="Data directory of a broker, or its store. Repeat the option for each broker.")
    ],
    ledger: Annotated[
        list[Path] | None,
        typer.Option(help="Ledger file of a publisher or consumer. Repeat the option for each of them."),
    ] = None,
    first: Annotated[
        str | None, typer.Option("--from", help="Judge messages from this time on (UTC), as 2026-11-16T04:30.")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Judge messages before this time (UTC). Without it: all so far.")
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            min=0.0, help="Seconds by which the clocks of clients and brokers may differ without being a violation."
        ),
    ] = 5.0,
    notes: Annotated[
        Path | None, typer.Option(help="Directory for progress. An audit that was interrupted resumes from it.")
    ] = None,
) -> None:
    """Check from the brokers' logs and the clients' ledgers whether the guarantees were kept.

    The exit status is 0 if all guarantees are proven, 1 if one is refuted, and 3 if none is refuted but some could
    not be judged.
    """
    from pandomq.cli.pipeline import audit_job

    audit_job.run(job, data, ledger or [], first=first, end=end, tolerance_s=tolerance, notes=notes)
