"""`pandomq cluster up`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from pandomq.cli.cluster.display import display
from pandomq.cli.cluster.plan import ClusterPlan
from pandomq.cli.cluster.polling import ClusterAnswers, ClusterPoller
from pandomq.cli.cluster.processes import Process, stop_all
from pandomq.cli.failures import RequestRejected, WrongUse
from pandomq.cli.output import say
from pandomq.replica.limits import LISTENERS_MAX, MEMBERS_MAX

cluster_app = typer.Typer(
    name="cluster", help="Run several brokers on this machine as one cluster.", no_args_is_help=True
)

LOOK_S: Final = 0.5
"""Time between two checks of the brokers."""


@cluster_app.callback()
def _group() -> None:
    """Exists so that `up` is a subcommand."""


@cluster_app.command("up")
def up(
    primaries: Annotated[
        int, typer.Option(min=1, max=MEMBERS_MAX, help="Number of primaries (brokers with a vote).")
    ] = 3,
    secondaries: Annotated[
        int, typer.Option(min=0, max=LISTENERS_MAX, help="Number of secondaries (brokers without a vote).")
    ] = 0,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="AMQP port of n1; later brokers use the following ports.")
    ] = 5672,
    http_port: Annotated[
        int, typer.Option(min=1, max=65535, help="HTTP port of n1; later brokers use the following ports.")
    ] = 15672,
    data: Annotated[
        Path,
        typer.Option(
            metavar="DIR",
            help="Directory of the cluster: the brokers' data directories DIR/n1, DIR/n2, … and the cluster key.",
        ),
    ] = Path("pandomq-cluster"),
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Configuration file for all of the brokers.", show_default=False)
    ] = None,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Name of the only broker to start, for example n2. The others keep running elsewhere."
        ),
    ] = None,
) -> None:
    """Start brokers n1, n2, … on this machine as one cluster and show a live table; ^C or SIGTERM stops all of them.

    A broker that fails is not restarted: `cluster up --only n2` with the same options starts it again. The process id
    of n1 is in DIR/n1/pid, and its log is in DIR/n1/log.
    """
    plan = ClusterPlan(
        primaries=primaries, secondaries=secondaries, port=port, http_port=http_port, data=data, config=config
    )
    places = plan.places()
    wanted = [place for place in places if only in (None, place.name)]
    if not wanted:
        raise WrongUse(
            f"--only '{only}' is not a broker of this cluster: expected one of "
            f"{', '.join(place.name for place in places)}"
        )
    if plan.make_key():
        say(f"created the cluster key {plan.key_file}")
    watch = ClusterPoller(places, plan.read_key())
    processes: list[Process] = []
    answers: ClusterAnswers | None = None
    try:
        with _stopped_by_signal() as stop:
            for place in wanted:
                processes.append(Process(plan, place))
            with display(places, {process.place.name: process for process in processes}) as shown:
                while not stop.is_set() and any(process.runs for process in processes):
                    answers = watch.look()
                    shown.show(answers)
                    stop.wait(LOOK_S)
                if stop.is_set():
                    stop_all(processes, None if answers is None else answers.root, shown.tell)
                else:
                    raise RequestRejected("; ".join(f"{process.place.name} {process.end}" for process in processes))
    finally:
        # After any failure here no broker is left running.
        stop_all(processes, None, say)
        watch.close()


@contextmanager
def _stopped_by_signal() -> Iterator[threading.Event]:
    stop = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
