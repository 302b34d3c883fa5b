"""`pandomq bench`: puts a load on any AMQP 0-9-1 broker and prints what it did.

Options become a `Load`; everything else is in `pandomq.bench`.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from pandomq.bench import display
from pandomq.bench.broker_process import PandoBroker
from pandomq.bench.client.url import parse_url
from pandomq.bench.client.wire import BrokerRefused
from pandomq.bench.load import Load
from pandomq.bench.measurements import overview as overview_loads
from pandomq.bench.measurements.connections import measure_connections
from pandomq.bench.measurements.features import measure_features
from pandomq.bench.measurements.flatness import bindings_load, measure_flatness, queues_load
from pandomq.bench.measurements.long_queue import KINDS, LongQueue, load_of
from pandomq.bench.measurements.streams import measure_stream
from pandomq.bench.run import Show, local_pid, measure
from pandomq.cli.bench.options import (
    LOCAL,
    Counts,
    Duration,
    Json,
    Pid,
    Quiet,
    Rounds,
    Size,
    Sizes,
    Url,
    WarmUp,
    refused,
    takes_load,
)

bench_app = typer.Typer(
    name="bench",
    help=(
        "Measure the throughput and the latency of any AMQP 0-9-1 broker. Without a command, the benchmark starts a "
        "PandoMQ broker of its own, runs a few loads against it, and stops it."
    ),
)
_console = Console(stderr=True)
_out = Console()

RESTARTS = ("stop", "kill", "no")


@bench_app.callback(invoke_without_command=True)
def overview(context: typer.Context) -> None:
    """Measure the throughput and the latency of any AMQP 0-9-1 broker.

    Without a command, the benchmark starts a PandoMQ broker of its own, runs a few loads against it, and stops it.
    """
    if context.invoked_subcommand is not None:
        return
    with _running("overview", quiet=False) as show, tempfile.TemporaryDirectory(prefix="pandomq-bench-") as directory:
        broker = PandoBroker("PandoMQ", Path(directory), plain=bool(os.environ.get("PANDOMQ_PLAIN")))
        broker.start()
        with contextlib.closing(broker):
            found = [measure(Load(url=broker.url, **changes), show) for changes in overview_loads.THROUGHPUT]
            paced = [measure(Load(url=broker.url, **overview_loads.LATENCY_CHANGES), show)]
    _out.print(display.throughput_table("Throughput", found))
    _out.print(display.latency_table("Latency", paced))


@bench_app.command()
@takes_load(
    "url",
    "size",
    "publishers",
    "consumers",
    "queues",
    "auto_ack",
    "ack_every",
    "prefetch",
    "persistent",
    "confirm_window",
    "backlog_max",
    "queue_arguments",
    "exchange_type",
    "bindings",
    "duration_s",
    "warm_up_s",
)
def throughput(
    load: Load,
    size: Sizes = [16],  # noqa: B006 (Typer copies defaults)
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Measure the highest throughput of publishing and consuming."""
    with _running("throughput", quiet) as show:
        loads = [msgspec.structs.replace(load, size_bytes=size_bytes) for size_bytes in size]
        found = [measure(one, show, pid) for one in loads]
    _out.print(display.throughput_table("Throughput", found))
    _write(json, "throughput", found)


@bench_app.command()
@takes_load(
    "url",
    "rate",
    "size_bytes",
    "publishers",
    "consumers",
    "queues",
    "auto_ack",
    "ack_every",
    "prefetch",
    "persistent",
    "confirms",
    "queue_arguments",
    "duration_s",
    "warm_up_s",
    rate=2000,
    size_bytes=1024,
    auto_ack=False,
    ack_every=1,
    prefetch=1000,
    duration_s=10.0,
    warm_up_s=2.0,
)
def latency(
    load: Load,
    confirms: Annotated[bool, typer.Option("--confirms/--no-confirms", help="Use publisher confirms.")] = True,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Measure the latency of delivery and of confirms at a fixed rate that the broker sustains easily."""
    with _running("latency", quiet) as show:
        found = [measure(msgspec.structs.replace(load, confirm_window=1 if confirms else 0), show, pid)]
    _out.print(display.latency_table("Latency", found))
    _write(json, "latency", found)


@bench_app.command()
@takes_load(
    "url",
    "subscribers",
    "size_bytes",
    "publishers",
    "backlog_max",
    "duration_s",
    "warm_up_s",
    size_bytes=100,
    backlog_max=1000,
)
def fanout(
    load: Load,
    subscribers: Annotated[
        int, typer.Option("--subscribers", "-n", min=1, help="Number of subscribers, each with a private queue.")
    ] = 200,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Measure deliveries per second to many subscribers, each with a connection and a private queue on one fanout
    exchange.
    """
    with _running("fan-out", quiet) as show:
        private = msgspec.structs.replace(
            load, consumers=subscribers, queues=subscribers, private_queues=True, exchange_type="fanout"
        )
        found = [measure(private, show, pid)]
    _out.print(display.throughput_table("Fan-out", found))
    _write(json, "fanout", found)


@bench_app.command()
def connections(
    url: Url = LOCAL,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Number of connections to open.")] = 10_000,
    load: Annotated[
        bool, typer.Option("--load/--no-load", help="Also measure a load without these connections and among them.")
    ] = True,
    duration: Duration = 3.0,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Measure connections with a channel, a private queue and a consumer: the time to open them, their memory, and
    their effect on a load.
    """
    with _running("connections", quiet) as show:
        found = measure_connections(url, count, Load(url=url, duration_s=duration) if load else None, show, pid)
    _out.print(display.connections_table(found))
    _write(json, "connections", found)


@bench_app.command()
def bindings(
    url: Url = LOCAL,
    exchange: Annotated[str, typer.Option(help="Type of the exchange: direct or topic.")] = "direct",
    counts: Counts = "10,1000,100000",
    size: Size = 16,
    rounds: Rounds = 3,
    duration: Duration = 2.0,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Measure the cost per message while an exchange has an increasing number of bindings."""
    with _running("bindings", quiet) as show:
        base = Load(url=url, size_bytes=size, duration_s=duration)
        loads = [(count, bindings_load(base, exchange, count)) for count in _numbers(counts)]
        found = measure_flatness(f"{exchange} bindings", loads, rounds, show, pid)
    _out.print(display.flatness_table(found))
    _write(json, "bindings", found)


@bench_app.command("queues")
def queues_(
    url: Url = LOCAL,
    counts: Counts = "1,10,100,1000",
    size: Size = 16,
    rounds: Rounds = 3,
    duration: Duration = 2.0,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Measure the cost per message while an increasing number of queues is in use."""
    with _running("queues", quiet) as show:
        base = Load(url=url, size_bytes=size, duration_s=duration)
        loads = [(count, queues_load(base, count)) for count in _numbers(counts)]
        found = measure_flatness("queues", loads, rounds, show, pid)
    _out.print(display.flatness_table(found))
    _write(json, "queues", found)


@bench_app.command()
def features(
    url: Url = LOCAL,
    size: Size = 16,
    rounds: Rounds = 3,
    duration: Duration = 1.5,
    warm_up: WarmUp = 0.5,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Measure the cost of each queue argument against a queue without arguments."""
    with _running("features", quiet) as show:
        base = Load(url=url, size_bytes=size, duration_s=duration, warm_up_s=warm_up)
        found = measure_features(base, rounds, show, pid)
    _out.print(display.features_table(found))
    _write(json, "features", found)


@bench_app.command()
def backlog(
    url: Annotated[
        str,
        typer.Option(
            "--url", "-u", help="URL of the broker. Without it, the benchmark starts a PandoMQ broker of its own."
        ),
    ] = "",
    kind: Annotated[str, typer.Option(help=f"Kind of messages: {', '.join(KINDS)}.")] = "persistent",
    messages: Annotated[
        int, typer.Option("--messages", "-n", min=100, help="Number of messages to queue.")
    ] = 1_000_000,
    size: Size = 1024,
    restart: Annotated[
        str, typer.Option(help="How the benchmark's own broker is restarted: stop, kill or no.")
    ] = "stop",
    directory: Annotated[Path | None, typer.Option(help="Data directory of the benchmark's own broker.")] = None,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Measure a long queue: the broker's memory, the cost of publishing and consuming, and the time of a restart."""
    with _running("backlog", quiet) as show, contextlib.ExitStack() as stack:
        if restart not in RESTARTS:
            raise ValueError(f"--restart {restart!r} is unknown: expected one of {', '.join(RESTARTS)}")
        own: PandoBroker | None = None
        if not url:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="pandomq-bench-", dir=directory))
            own = PandoBroker("PandoMQ", Path(place), plain=bool(os.environ.get("PANDOMQ_PLAIN")))
            own.start()
            stack.callback(own.close)
        url, pid = (own.url, own.pid) if own is not None else (url, pid or local_pid(parse_url(url)))
        if not pid:
            raise ValueError("cannot measure the broker's memory: its process is not on this machine. Leave --pid out")
        queue = LongQueue(load_of(kind, url, size), kind, messages, pid, show)
        if own is not None and restart != "no":
            queue.restart(partial(own.restart, cleanly=restart == "stop"))
        found = queue.drain()
    _out.print(display.long_queue_table(found))
    _write(json, "backlog", found)


@bench_app.command()
def streams(
    url: Url = LOCAL,
    messages: Annotated[
        int, typer.Option("--messages", "-n", min=100, help="Number of messages in the stream.")
    ] = 300_000,
    size: Size = 1024,
    prefetch: Annotated[
        int, typer.Option(min=1, max=65535, help="Prefetch: unacknowledged deliveries of the reader.")
    ] = 1000,
    rounds: Rounds = 3,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Measure a stream: the cost of publishing a message, and of reading it from the beginning."""
    with _running("streams", quiet) as show:
        found = measure_stream(url, messages, size, prefetch, rounds, pid or local_pid(parse_url(url)), show)
    _out.print(display.stream_table(found))
    _write(json, "streams", found)


@contextlib.contextmanager
def _running(title: str, quiet: bool) -> Iterator[Show]:
    """Shows progress; after an error of the broker or the user it prints one line."""
    try:
        with display.progress(_console, title, quiet) as show:
            yield show
    except (BrokerRefused, OSError, RuntimeError, ValueError) as error:
        raise refused(error) from None


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _write(path: Path | None, mode: str, result: object) -> None:
    if path is not None:
        path.write_bytes(msgspec.json.format(msgspec.json.encode({"mode": mode, "result": result}), indent=2) + b"\n")
