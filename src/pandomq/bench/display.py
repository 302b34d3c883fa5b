"""A live progress display while loads run, and tables at the end. It does not use sockets.

The display is redrawn only when a run reports, twice a second at most: the processor is needed for the load.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from pandomq.bench.load import Measurement
from pandomq.bench.measurements.connections import ConnectionsResult
from pandomq.bench.measurements.features import FeaturesResult
from pandomq.bench.measurements.flatness import FlatnessResult
from pandomq.bench.measurements.long_queue import LongQueuePhase, LongQueueResult
from pandomq.bench.measurements.streams import StreamResult
from pandomq.bench.percentiles import Latency
from pandomq.bench.run import Show, show_nothing


@contextmanager
def progress(console: Console, title: str, quiet: bool = False) -> Iterator[Show]:
    """Returns the function to which runs report. Nothing is drawn unless the output is a terminal."""
    if quiet or not console.is_terminal:
        yield show_nothing
        return
    columns = (
        TextColumn("[bold]{task.fields[title]}"),
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        TextColumn("[cyan]{task.fields[rate]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, auto_refresh=False, transient=True) as bars:
        task = bars.add_task("set up", total=1.0, title=title, rate="")

        def show(phase: str, done: float, rate: float) -> None:
            bars.update(task, description=phase, completed=done, rate=f"{rate:,.0f}/s" if rate else "", refresh=True)

        yield show


def throughput_table(title: str, measurements: Sequence[Measurement]) -> Table:
    table = Table(title=title, caption=_caption(measurements) + " µs: processor time per message.")
    table.add_column("load")
    columns = _throughput_columns(measurements)
    for name in columns:
        table.add_column(name, justify="right", no_wrap=True)
    for number, item in enumerate(measurements):
        table.add_row(describe(item), *(cells[number] for cells in columns.values()))
    return table


def _throughput_columns(measurements: Sequence[Measurement]) -> dict[str, list[str]]:
    """Columns by name; columns without information are left out."""
    columns = {
        "published/s": [f"{item.published_rate:,.0f}" for item in measurements],
        "delivered/s": [f"{item.delivered_rate:,.0f}" for item in measurements],
    }
    if any(item.confirmed_rate for item in measurements):
        columns["confirmed/s"] = [f"{item.confirmed_rate:,.0f}" for item in measurements]
    if any(item.missing for item in measurements):
        columns["missing"] = [f"{item.missing:,}" for item in measurements]
    if any(item.broker_cpu_us is not None for item in measurements):
        columns["broker µs"] = [_microseconds(item.broker_cpu_us) for item in measurements]
    columns["load µs"] = [f"{item.generator_cpu_us:.2f}" for item in measurements]
    return columns


def latency_table(title: str, measurements: Sequence[Measurement]) -> Table:
    table = Table(title=title, caption=_caption(measurements) + " Times in milliseconds.")
    table.add_column("load")
    table.add_column("from publish to")
    for column in ("samples", "p50", "p90", "p99", "p99.9", "max"):
        table.add_column(column, justify="right")
    for item in measurements:
        words = describe(item)
        for what, latency in (("delivery", item.delivery_latency), ("confirm", item.confirm_latency)):
            if latency is not None:
                table.add_row(words, what, *_latency_cells(latency))
                words = ""
    return table


def _latency_cells(latency: Latency) -> list[str]:
    times_us = (latency.p50_us, latency.p90_us, latency.p99_us, latency.p999_us, latency.max_us)
    return [f"{latency.samples:,}", *(f"{time_us / 1000:.2f}" for time_us in times_us)]


def connections_table(result: ConnectionsResult) -> Table:
    table = Table(title=f"Connections: {result.server}", show_header=False)
    table.add_row("opened", f"{result.connections:,} in {result.seconds:.2f} s")
    table.add_row("per second", f"{result.opened_rate:,.0f}")
    if result.kib_each is not None:
        table.add_row("memory per connection", f"{result.kib_each:.1f} KiB")
    if result.alone is not None and result.among_idle is not None:
        table.add_row("load without them", f"{result.alone.processed_rate:,.0f} messages/s")
        table.add_row("load among them", f"{result.among_idle.processed_rate:,.0f} messages/s")
        table.add_row("cost per message", f"{result.idle_cost_ratio:.2f} times")
    return table


def flatness_table(result: FlatnessResult) -> Table:
    table = Table(title=f"{result.what}: {result.server}")
    for column in ("count", "messages/s", "broker µs", "cost per message"):
        table.add_column(column, justify="right")
    for point in result.points:
        cpu = _microseconds(point.broker_cpu_us)
        table.add_row(f"{point.count:,}", f"{point.rate:,.0f}", cpu, f"{point.cost_ratio:.2f} times")
    return table


def features_table(result: FeaturesResult, cost_ratio_max: float = 1.5) -> Table:
    caption = f"Medians of {result.rounds} rounds; red where a message costs more than {cost_ratio_max} times."
    table = Table(title=f"What queue arguments cost: {result.server}", caption=caption)
    table.add_column("case")
    table.add_column("against")
    table.add_column("messages/s", justify="right")
    table.add_column("broker µs", justify="right")
    table.add_column("cost", justify="right")
    for cost in result.costs:
        if cost.error:
            table.add_row(cost.name, cost.baseline, "–", "–", f"rejected: {cost.error}", style="dim")
            continue
        style = "red" if cost.targeted and cost.cost_ratio > cost_ratio_max else None
        cpu = _microseconds(cost.broker_cpu_us)
        table.add_row(cost.name, cost.baseline, f"{cost.rate:,.0f}", cpu, f"{cost.cost_ratio:.2f}", style=style)
    return table


def _microseconds(value_us: float | None) -> str:
    return "–" if value_us is None else f"{value_us:.2f}"


def describe(item: Measurement) -> str:
    """A load in a few words: only its unusual settings."""
    load = item.load
    words = [f"{load.size_bytes:,} B", "auto-ack" if load.auto_ack else f"acks every {load.ack_every}"]
    if load.prefetch:
        words.append(f"prefetch {load.prefetch}")
    if load.persistent:
        words.append("persistent")
    if load.confirm_window:
        words.append("confirms" if load.rate else f"confirms, window {load.confirm_window:,}")
    if load.rate:
        words.append(f"{load.rate:,}/s")
    if load.exchange_type:
        words.append(load.exchange_type)
    for count, noun in ((load.publishers, "publishers"), (load.consumers, "consumers"), (load.queues, "queues")):
        if count != 1:
            words.append(f"{count:,} {noun}")
    words += [f"{name}={value}" for name, value in load.queue_arguments.items()]
    return ", ".join(words)


def _caption(measurements: Sequence[Measurement]) -> str:
    servers = sorted({item.server for item in measurements})
    seconds = sum(item.seconds for item in measurements) / max(len(measurements), 1)
    return f"{', '.join(servers)}; {seconds:.1f} s each."


def long_queue_table(found: LongQueueResult) -> Table:
    table = Table(title=f"{found.messages:,} messages of {found.size_bytes:,} bytes, {found.kind}", show_header=False)
    table.add_row("broker", found.server)
    table.add_row(
        "memory before, full, maximum",
        _mebibytes(found.resident_before_bytes, found.resident_full_bytes, found.resident_peak_bytes),
    )
    table.add_row("in", _phase(found.fill))
    table.add_row("queued", f"{found.queued:,}")
    if found.start_s is not None and found.resident_restarted_bytes is not None:
        table.add_row("stop, start", f"{found.stop_s:.1f} s, {found.start_s:.1f} s")
        table.add_row("after it", f"{found.kept:,} messages, {_mebibytes(found.resident_restarted_bytes)}")
    if found.drain is not None:
        table.add_row("out", _phase(found.drain))
        table.add_row("memory when empty", _mebibytes(found.resident_drained_bytes))
    return table


def stream_table(found: StreamResult) -> Table:
    table = Table(title=f"{found.fill.messages:,} messages of {found.size_bytes:,} bytes", show_header=False)
    table.add_row("broker", found.server)
    for name, phase in (("in", found.fill), (f"read, prefetch {found.prefetch:,}", found.read)):
        cpu = "" if phase.broker_cpu_us is None else f"; {phase.broker_cpu_us:.2f} µs of broker time per message"
        table.add_row(name, f"{phase.rate:,.0f}/s{cpu}")
    return table


def _mebibytes(*sizes: int) -> str:
    return ", ".join(f"{size / 2**20:,.0f}" for size in sizes) + " MiB"


def _phase(phase: LongQueuePhase) -> str:
    tenths = f"first tenth {phase.early_cpu_us:.2f}, last {phase.late_cpu_us:.2f}"
    return (
        f"{phase.rate:,.0f}/s in {phase.seconds:.1f} s; {phase.broker_cpu_us:.2f} µs of broker time per message "
        f"({tenths})"
    )
