"""The common parts of the jobs: the check of brokers, a session, a progress bar, and the summary at the end."""

from __future__ import annotations

import importlib.util
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pandomq.cli.failures import NoBroker, RequestRejected, WrongUse
from pandomq.cli.output import cell, print_table, say
from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import BadUrl, DataFailure, Unreachable
from pandomq.pipeline.report import render
from pandomq.pipeline.session import spark_session
from pandomq.spark.java import JavaMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pandomq.cli.pipeline.job_options import JobOptions
    from pandomq.pipeline.summary import Summary

REACH_S: Final = 30.0
"""A failover is finished by then."""
_console = Console(stderr=True)
_OWN_WORDS: Final = re.compile(r"\bpandomq\.[\w.]+: (.+)")
"""In Spark's text for an error in one of its Python processes."""
_CALL: Final = re.compile(r"An error occurred while calling [^\n]*\n: ")
"""The start of Java's messages."""


@contextmanager
def _in_plain_words() -> Iterator[None]:
    """Turns errors of brokers into messages. Raises WrongUse for a bad url, NoBroker, Refused."""
    try:
        yield
    except BadUrl as bad:
        raise WrongUse(str(bad)) from bad
    except Unreachable as none:
        raise NoBroker(str(none)) from none
    except DataFailure as failure:
        raise RequestRejected(str(failure)) from failure


@contextmanager
def session_for(job: str, master: str) -> Iterator[SparkSession]:
    """Raises Refused if Spark or Java is missing, or for a job's failure; for brokers' errors as `_in_plain_words`
    does."""
    if importlib.util.find_spec("pyspark") is None:
        raise RequestRejected("this needs Spark: pip install 'pandomq[spark]'")
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with _in_plain_words(), spark_session(job, master) as session:
            yield session
    except JavaMissing as missing:
        raise RequestRejected(str(missing)) from missing
    except (PySparkException, Py4JError) as failure:
        raise RequestRejected(reason_of(str(failure))) from failure


def reason_of(text: str) -> str:
    """The cause of an error, without Spark's wrapping."""
    own = _OWN_WORDS.findall(text)
    return own[-1] if own else _CALL.sub("", text).strip().partition("\n")[0]


def insist_on_broker(url: str) -> None:
    """Before Spark is started, which would try for minutes. Raises NoBroker, Refused, WrongUse."""
    with asking(url) as client:
        client.streams("-")


@contextmanager
def asking(url: str) -> Iterator[DataClient]:
    """Raises NoBroker, Refused, WrongUse."""
    with _in_plain_words(), DataClient(url, timeout_s=REACH_S) as client:
        yield client


def on_interruption(stop: Callable[[], None]) -> None:
    """From now on an interruption asks the job to end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop())


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar at a terminal, nothing in a file."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar: AbstractContextManager[Progress] = Progress(*columns, console=_console, transient=True)
    with bar as display:
        task = display.add_task(what, total=total)
        yield lambda done: display.advance(task, done)


def finish(summary: Summary, job: JobOptions) -> None:
    """Shows the summary, writes the requested files, and ends with 1 if it is not good."""
    print_table(("", summary.job), [(name, cell(value)) for name, value in summary.facts.items()])
    for table in summary.tables:
        typer.echo(f"\n{table.title}")
        print_table(table.headers, table.rows)
    if job.json is not None:
        job.json.write_text(summary.to_json() + "\n")
    if job.report is not None:
        job.report.write_text(render(f"PandoMQ: {summary.job}", [summary]))
        say(f"wrote the report to {job.report}")
    say(summary.verdict)
    if not summary.good:
        raise typer.Exit(1)
