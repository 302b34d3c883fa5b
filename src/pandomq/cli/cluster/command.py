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
from pandomq.cli.cluster.plan import Plan
from pandomq.cli.cluster.processes import Process, stop_all
from pandomq.cli.cluster.sight import Sight, Watch
from pandomq.cli.failures import Refused, WrongUse
from pandomq.cli.output import say
from pandomq.replica.limits import LISTENERS_MAX, MEMBERS_MAX

cluster_app = typer.Typer(name="cluster", help="Several brokers on this machine.", no_args_is_help=True)

LOOK_S: Final = 0.5
"""Between two looks at the brokers."""


@cluster_app.callback()
def _group() -> None:
    """So that `up` is a word of its own."""


@cluster_app.command("up")
def up(
    primaries: Annotated[int, typer.Option(min=1, max=MEMBERS_MAX, help="Brokers that vote.")] = 3,
    secondaries: Annotated[int, typer.Option(min=0, max=LISTENERS_MAX, help="Brokers that do not.")] = 0,
    port: Annotated[int, typer.Option(min=1, max=65535, help="The first broker's; the next has the next.")] = 5672,
    http_port: Annotated[int, typer.Option(min=1, max=65535, help="The same for the HTTP API.")] = 15672,
    data: Annotated[Path, typer.Option(metavar="DIR", help="DIR/n1, DIR/n2, … and the key.")] = Path("pandomq-cluster"),
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A configuration for all of them.", show_default=False)
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="NAME", help="Start this one again; the others run elsewhere.")
    ] = None,
) -> None:
    """Starts brokers n1, n2, … on this machine as one cluster, and shows them; ^C or SIGTERM stops all.

    A broker that dies stays dead: `cluster up --only n2` with the same options starts it again. Each one's pid is in
    DIR/n1/pid, what it logs in DIR/n1/log.
    """
    plan = Plan(primaries=primaries, secondaries=secondaries, port=port, http_port=http_port, data=data, config=config)
    places = plan.places()
    wanted = [place for place in places if only in (None, place.name)]
    if not wanted:
        raise WrongUse(f"--only {only} is none of {', '.join(place.name for place in places)}")
    if plan.make_key():
        say(f"made a key for the cluster: {plan.key_file}")
    watch = Watch(places, plan.read_key())
    processes: list[Process] = []
    sight: Sight | None = None
    try:
        with _stopped_by_signal() as stop:
            for place in wanted:
                processes.append(Process(plan, place))
            with display(places, {process.place.name: process for process in processes}) as shown:
                while not stop.is_set() and any(process.runs for process in processes):
                    sight = watch.look()
                    shown.show(sight)
                    stop.wait(LOOK_S)
                if stop.is_set():
                    stop_all(processes, None if sight is None else sight.root, shown.tell)
                else:
                    raise Refused("; ".join(f"{process.place.name} {process.end}" for process in processes))
    finally:
        # Whatever went wrong here, nobody is left behind.
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
