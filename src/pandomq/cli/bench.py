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
from pandomq.bench.connections import measure_connections
from pandomq.bench.features import measure_features
from pandomq.bench.flatness import bindings_load, measure_flatness, queues_load
from pandomq.bench.load import ArgumentMap, Load, Measurement
from pandomq.bench.long_queue import KINDS, LongQueue, load_of
from pandomq.bench.peers import works
from pandomq.bench.peers.brokers import PandoBroker
from pandomq.bench.run import Show, local_pid, measure
from pandomq.bench.streams import measure_stream
from pandomq.bench.url import parse_url
from pandomq.bench.wire import BrokerRefused

bench_app = typer.Typer(name="bench", help="Load generator: measures any AMQP 0-9-1 broker by its URL.")
_console = Console(stderr=True)
_out = Console()

Url = Annotated[str, typer.Option("--url", "-u", help="amqp://user:password@host:port/vhost")]
Json = Annotated[Path | None, typer.Option("--json", help="Write the result to this file as well.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress display.")]
Pid = Annotated[int | None, typer.Option(help="The broker's process, for its memory and processor time.")]
Sizes = Annotated[list[int], typer.Option("--size", "-s", help="Body bytes; repeat for several runs.")]
Size = Annotated[int, typer.Option("--size", "-s", help="Body bytes.")]
Publishers = Annotated[int, typer.Option("--publishers", "-p", min=1, help="Publishing connections.")]
Consumers = Annotated[int, typer.Option("--consumers", "-c", min=0, help="Consuming connections.")]
Queues = Annotated[int, typer.Option("--queues", min=1, help="Queues; messages go to them in turn.")]
Acks = Annotated[bool, typer.Option("--acks/--auto-ack", help="Acknowledge deliveries, or let the broker forget them.")]
AckEvery = Annotated[int, typer.Option(min=1, help="One ack (multiple) for this many deliveries.")]
Prefetch = Annotated[int, typer.Option(min=0, max=65535, help="Unacked deliveries allowed to a consumer; 0: any.")]
Persistent = Annotated[bool, typer.Option("--persistent", help="Durable queues and delivery mode 2.")]
Confirms = Annotated[int, typer.Option("--confirms", min=0, help="Publisher confirms with this window; 0: none.")]
Backlog = Annotated[int, typer.Option(min=0, help="Messages that publishers may be ahead of consumers; 0: any.")]
QueueType = Annotated[str, typer.Option(help="x-queue-type: classic, quorum, …")]
Argument = Annotated[list[str], typer.Option("--argument", "-a", help="Queue argument NAME=VALUE; repeatable.")]
Exchange = Annotated[str, typer.Option(help="direct, topic or fanout; left out: the default exchange.")]
Bindings = Annotated[int, typer.Option(min=0, help="Bindings of the exchange in all; 0: one for each queue.")]
Duration = Annotated[float, typer.Option("--duration", "-d", help="Measured seconds.")]
WarmUp = Annotated[float, typer.Option(help="Seconds before the measured ones.")]
Rounds = Annotated[int, typer.Option(min=1, help="Rounds; the median counts.")]
Counts = Annotated[str, typer.Option(help="Comma-separated; the first is what the others are compared with.")]

LOCAL = "amqp://guest:guest@127.0.0.1:5672/"
RESTARTS = ("stop", "kill", "no")


@bench_app.callback(invoke_without_command=True)
def overview(context: typer.Context) -> None:
    """Load generator: measures any AMQP 0-9-1 broker by its URL.

    Without a command it starts a PandoMQ of its own, puts a few loads on it, and ends it.
    """
    if context.invoked_subcommand is not None:
        return
    with _running("overview", quiet=False) as show, tempfile.TemporaryDirectory(prefix="pandomq-bench-") as directory:
        broker = PandoBroker("PandoMQ", Path(directory), plain=bool(os.environ.get("PANDOMQ_PLAIN")))
        broker.start()
        with contextlib.closing(broker):
            found = [measure(Load(url=broker.url, **changes), show) for changes in works.OVERVIEW]
            paced = [measure(Load(url=broker.url, **works.LATENCY_CHANGES), show)]
    _out.print(display.throughput_table("Throughput", found))
    _out.print(display.latency_table("Latency", paced))


@bench_app.command()
def throughput(
    url: Url = LOCAL,
    size: Sizes = [16],  # noqa: B006 (Typer copies defaults)
    publishers: Publishers = 1,
    consumers: Consumers = 1,
    queues: Queues = 1,
    acks: Acks = False,
    ack_every: AckEvery = 100,
    prefetch: Prefetch = 0,
    persistent: Persistent = False,
    confirms: Confirms = 0,
    backlog: Backlog = 20_000,
    queue_type: QueueType = "",
    argument: Argument = [],  # noqa: B006
    exchange: Exchange = "",
    bindings: Bindings = 0,
    duration: Duration = 5.0,
    warm_up: WarmUp = 1.0,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """As many messages as the broker takes and delivers."""
    with _running("throughput", quiet) as show:
        found: list[Measurement] = []
        for size_bytes in size:
            load = Load(
                url=url,
                size_bytes=size_bytes,
                publishers=publishers,
                consumers=consumers,
                queues=queues,
                auto_ack=not acks,
                ack_every=ack_every,
                prefetch=prefetch,
                persistent=persistent,
                durable=persistent or queue_type == "quorum",
                confirm_window=confirms,
                backlog_max=backlog,
                queue_arguments=_queue_arguments(queue_type, argument),
                exchange_type=exchange,
                bindings=bindings,
                duration_s=duration,
                warm_up_s=warm_up,
            )
            found.append(measure(load, show, pid))
    _out.print(display.throughput_table("Throughput", found))
    _write(json, "throughput", found)


@bench_app.command()
def latency(
    url: Url = LOCAL,
    rate: Annotated[int, typer.Option("--rate", "-r", min=1, help="Messages a second in all.")] = 2000,
    size: Size = 1024,
    publishers: Publishers = 1,
    consumers: Consumers = 1,
    queues: Queues = 1,
    acks: Acks = True,
    ack_every: AckEvery = 1,
    prefetch: Prefetch = 1000,
    persistent: Persistent = False,
    confirms: Annotated[bool, typer.Option("--confirms/--no-confirms", help="Publisher confirms.")] = True,
    queue_type: QueueType = "",
    argument: Argument = [],  # noqa: B006
    duration: Duration = 10.0,
    warm_up: WarmUp = 2.0,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Percentiles of the time to delivery and to confirm, at a rate that the broker does not have to sweat for."""
    with _running("latency", quiet) as show:
        load = Load(
            url=url,
            size_bytes=size,
            rate=rate,
            publishers=publishers,
            consumers=consumers,
            queues=queues,
            auto_ack=not acks,
            ack_every=ack_every,
            prefetch=prefetch,
            persistent=persistent,
            durable=persistent or queue_type == "quorum",
            confirm_window=1 if confirms else 0,
            queue_arguments=_queue_arguments(queue_type, argument),
            duration_s=duration,
            warm_up_s=warm_up,
        )
        found = [measure(load, show, pid)]
    _out.print(display.latency_table("Latency", found))
    _write(json, "latency", found)


@bench_app.command()
def fanout(
    url: Url = LOCAL,
    subscribers: Annotated[int, typer.Option("--subscribers", "-n", min=1, help="Each with a private queue.")] = 200,
    size: Size = 100,
    publishers: Publishers = 1,
    backlog: Backlog = 1000,
    duration: Duration = 5.0,
    warm_up: WarmUp = 1.0,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Deliveries a second to many subscribers, each with a connection and a private queue on one fanout exchange."""
    with _running("fan-out", quiet) as show:
        load = Load(
            url=url,
            size_bytes=size,
            publishers=publishers,
            consumers=subscribers,
            queues=subscribers,
            private_queues=True,
            exchange_type="fanout",
            backlog_max=backlog,
            duration_s=duration,
            warm_up_s=warm_up,
        )
        found = [measure(load, show, pid)]
    _out.print(display.throughput_table("Fan-out", found))
    _write(json, "fanout", found)


@bench_app.command()
def connections(
    url: Url = LOCAL,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Connections to open.")] = 10_000,
    load: Annotated[bool, typer.Option("--load/--no-load", help="Also measure a load without and among them.")] = True,
    duration: Duration = 3.0,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Opens connections with channel, private queue and consumer: how fast, how heavy, and whether they slow others."""
    with _running("connections", quiet) as show:
        found = measure_connections(url, count, Load(url=url, duration_s=duration) if load else None, show, pid)
    _out.print(display.connections_table(found))
    _write(json, "connections", found)


@bench_app.command()
def bindings(
    url: Url = LOCAL,
    exchange: Annotated[str, typer.Option(help="direct or topic.")] = "direct",
    counts: Counts = "10,1000,100000",
    size: Size = 16,
    rounds: Rounds = 3,
    duration: Duration = 2.0,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """The cost of a message while an exchange has more and more bindings."""
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
    """The cost of a message while there are more and more queues, all in use."""
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
    """What each queue argument costs against a plain queue."""
    with _running("features", quiet) as show:
        base = Load(url=url, size_bytes=size, duration_s=duration, warm_up_s=warm_up)
        found = measure_features(base, rounds, show, pid)
    _out.print(display.features_table(found))
    _write(json, "features", found)


@bench_app.command()
def backlog(
    url: Annotated[str, typer.Option("--url", "-u", help="A broker; left out: a PandoMQ of its own.")] = "",
    kind: Annotated[str, typer.Option(help=f"{', '.join(KINDS)}.")] = "persistent",
    messages: Annotated[int, typer.Option("--messages", "-n", min=100, help="Messages to queue.")] = 1_000_000,
    size: Size = 1024,
    restart: Annotated[str, typer.Option(help="stop, kill or no: how a broker of its own is restarted.")] = "stop",
    directory: Annotated[Path | None, typer.Option(help="Where a broker of its own has its data.")] = None,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """A long queue: the broker's memory, the cost of a message in and out, and how long a restart with it takes."""
    with _running("backlog", quiet) as show, contextlib.ExitStack() as stack:
        if restart not in RESTARTS:
            raise ValueError(f"--restart {restart!r} is none of {', '.join(RESTARTS)}")
        own: PandoBroker | None = None
        if not url:
            place = stack.enter_context(tempfile.TemporaryDirectory(prefix="pandomq-bench-", dir=directory))
            own = PandoBroker("PandoMQ", Path(place), plain=bool(os.environ.get("PANDOMQ_PLAIN")))
            own.start()
            stack.callback(own.close)
        url, pid = (own.url, own.pid) if own is not None else (url, pid or local_pid(parse_url(url)))
        if not pid:
            raise ValueError("the broker's process is not on this machine: it cannot be weighed")
        queue = LongQueue(load_of(kind, url, size), kind, messages, pid, show)
        if own is not None and restart != "no":
            queue.restart(partial(own.restart, cleanly=restart == "stop"))
        found = queue.drain()
    _out.print(display.long_queue_table(found))
    _write(json, "backlog", found)


@bench_app.command()
def streams(
    url: Url = LOCAL,
    messages: Annotated[int, typer.Option("--messages", "-n", min=100, help="Messages of the stream.")] = 300_000,
    size: Size = 1024,
    prefetch: Annotated[int, typer.Option(min=1, max=65535, help="Unacked deliveries allowed.")] = 1000,
    rounds: Rounds = 3,
    pid: Pid = None,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """A stream: the cost of a message in, and of one that is read from the beginning."""
    with _running("streams", quiet) as show:
        found = measure_stream(url, messages, size, prefetch, rounds, pid or local_pid(parse_url(url)), show)
    _out.print(display.stream_table(found))
    _write(json, "streams", found)


@contextlib.contextmanager
def _running(title: str, quiet: bool) -> Iterator[Show]:
    """Progress while it runs; what the broker or the user got wrong comes out as one line."""
    try:
        with display.progress(_console, title, quiet) as show:
            yield show
    except (BrokerRefused, OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        typer.echo(f"pandomq bench: {reason}", err=True)
        raise typer.Exit(1) from None


def _queue_arguments(queue_type: str, arguments: list[str]) -> ArgumentMap:
    found: ArgumentMap = {"x-queue-type": queue_type} if queue_type else {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not equals:
            raise ValueError(f"{argument!r} is not NAME=VALUE")
        found[name] = _argument_value(value)
    return found


def _argument_value(text: str) -> bool | int | str:
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.lstrip("-").isdigit() else text


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _write(path: Path | None, mode: str, result: object) -> None:
    if path is not None:
        path.write_bytes(msgspec.json.format(msgspec.json.encode({"mode": mode, "result": result}), indent=2) + b"\n")
