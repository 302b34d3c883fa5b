"""What the jobs have in common: brokers that answer, a session, a bar that moves, and the summary at the end."""

from __future__ import annotations

import importlib.util
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pandomq.cli.failures import NoBroker, Refused, WrongUse
from pandomq.cli.output import cell, print_table, say
from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import BadUrl, DataFailure, Unreachable
from pandomq.pipeline.report import render
from pandomq.pipeline.session import spark_session
from pandomq.spark.java import JavaMissing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pandomq.pipeline.summary import Summary

REACH_S: Final = 30.0
"""A failover is over by then."""
_console = Console(stderr=True)
_OWN_WORDS: Final = re.compile(r"\bpandomq\.[\w.]+: (.+)")
"""In what Spark makes of an error that one of its Python processes met."""
_CALL: Final = re.compile(r"An error occurred while calling [^\n]*\n: ")
"""How what Java says begins."""


@contextmanager
def _in_plain_words() -> Iterator[None]:
    """What went wrong with brokers. Raises WrongUse for a bad url, NoBroker, Refused."""
    try:
        yield
    except BadUrl as bad:
        raise WrongUse(str(bad)) from bad
    except Unreachable as none:
        raise NoBroker(str(none)) from none
    except DataFailure as failure:
        raise Refused(str(failure)) from failure


@contextmanager
def session_for(job: str, master: str) -> Iterator[SparkSession]:
    """Raises Refused if Spark or Java is missing, or for what a job died of; of brokers as `_in_plain_words` does."""
    if importlib.util.find_spec("pyspark") is None:
        raise Refused("this needs Spark: pip install 'pandomq[spark]'")
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with _in_plain_words(), spark_session(job, master) as session:
            yield session
    except JavaMissing as missing:
        raise Refused(str(missing)) from missing
    except (PySparkException, Py4JError) as failure:
        raise Refused(reason_of(str(failure))) from failure


def reason_of(text: str) -> str:
    """What went wrong, without the way it went through Spark."""
    own = _OWN_WORDS.findall(text)
    return own[-1] if own else _CALL.sub("", text).strip().partition("\n")[0]


def insist_on_broker(url: str) -> None:
    """Before Spark is started, which would try for minutes. Raises NoBroker, Refused, WrongUse."""
    with _in_plain_words(), DataClient(url, timeout_s=REACH_S) as client:
        client.streams("-")


def on_interruption(stop: Callable[[], None]) -> None:
    """From now on, whoever interrupts the job asks it to end."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop())


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar for a person, nothing for a file."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar: AbstractContextManager[Progress] = Progress(*columns, console=_console, transient=True)
    with bar as display:
        task = display.add_task(what, total=total)
        yield lambda done: display.advance(task, done)


def finish(summary: Summary, json: Path | None, report: Path | None) -> None:
    """Shows the summary, writes what was asked for, and ends with 1 if it is not good."""
    print_table(("", summary.job), [(name, cell(value)) for name, value in summary.facts.items()])
    for table in summary.tables:
        typer.echo(f"\n{table.title}")
        print_table(table.headers, table.rows)
    if json is not None:
        json.write_text(summary.to_json() + "\n")
    if report is not None:
        report.write_text(render(f"PandoMQ: {summary.job}", [summary]))
        say(f"the report is in {report}")
    say(summary.verdict)
    if not summary.good:
        raise typer.Exit(1)
