"""`make demo`: a broker, publishers and consumers through it, live, and an account of every message at the end.

Everything it starts it ends: the broker, the clients, the directory. The exit code is 0 only if the account balances:
what was published was confirmed, delivered and acked, each message once.
"""

from __future__ import annotations

import argparse
import multiprocessing
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import pika
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar
from rich.table import Table

# `python tools/demo.py` puts only this directory on the path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.demo_clients import EXCHANGE, QUEUE, Progress, Published, Report, Seen, consume, publish

START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 15.0
DRAIN_TIMEOUT_S = 30.0
REFRESH_S = 0.25
RATE_WINDOW_S = 2.0
LATENCIES_KEPT = 20_000
COUNTED = ("published", "confirmed", "delivered", "acked")


class DemoFailed(Exception):
    """Something other than the account went wrong; the text says what."""


@contextmanager
def running_broker(directory: Path) -> Iterator[str]:
    """A broker of our own; yields its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log_path = directory / "broker.log"
    command = [sys.executable, "-m", "pandomq.cli.main", "start", "--name", "demo"]
    command += ["--listen", f"127.0.0.1:{port}", "--http", "off", "--data", str(directory / "data")]
    with log_path.open("wb") as log:
        # A session of its own, so that ^C reaches the demo alone, which then ends the broker in order.
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True)
    try:
        _wait_until_it_accepts(process, port, log_path)
        yield f"amqp://guest:guest@127.0.0.1:{port}/%2F"
        if process.poll() is not None:
            raise DemoFailed(f"the broker ended by itself:\n{log_path.read_text(errors='replace')}")
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_until_it_accepts(process: subprocess.Popen[bytes], port: int, log_path: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise DemoFailed(f"the broker did not start:\n{log_path.read_text(errors='replace')}")


def declare(url: str) -> None:
    connection = pika.BlockingConnection(pika.URLParameters(url))
    channel = connection.channel()
    channel.exchange_declare(EXCHANGE, "topic", durable=True)
    channel.queue_declare(QUEUE, durable=True)
    channel.queue_bind(QUEUE, EXCHANGE, "order.#")
    connection.close()


@dataclass
class Counters:
    """What all clients together have reported, and how fast it moves."""

    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))
    latencies_ms: deque[float] = field(default_factory=lambda: deque(maxlen=LATENCIES_KEPT))
    history: deque[tuple[float, dict[str, int]]] = field(default_factory=deque)

    def add(self, progress: Progress) -> None:
        for name in COUNTED:
            self.totals[name] += getattr(progress, name)
        self.latencies_ms.extend(progress.latencies_ms)

    def rates(self) -> dict[str, float]:
        """Per second, over the last moments."""
        now = time.monotonic()
        self.history.append((now, dict(self.totals)))
        while len(self.history) > 2 and now - self.history[0][0] > RATE_WINDOW_S:
            self.history.popleft()
        since, before = self.history[0]
        elapsed_s = max(now - since, 1e-9)
        return {name: (self.totals[name] - before[name]) / elapsed_s if now > since else 0.0 for name in COUNTED}

    def latency_ms(self, share: float) -> float:
        ordered = sorted(self.latencies_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0


@dataclass
class Account:
    """Made of the clients' last words; every message has a number, so that none can hide."""

    counters: Counters
    published: dict[int, Published] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)

    def lines(self) -> list[tuple[str, int]]:
        published = sum(p.count for p in self.published.values())
        confirmed = sum(p.confirmed for p in self.published.values())
        lost = duplicates = delivered = 0
        for publisher, report in self.published.items():
            times = [seen.times.get(publisher, b"") for seen in self.seen]
            for number in range(report.count):
                came = sum(t[number] for t in times if number < len(t))
                delivered += came
                lost += came == 0
                duplicates += max(0, came - 1)
        acked = self.counters.totals["acked"]
        return [
            ("published", published),
            ("confirmed", confirmed),
            ("delivered", delivered),
            ("acked", acked),
            ("lost", lost),
            ("duplicates", duplicates),
        ]

    def balances(self) -> bool:
        numbers = dict(self.lines())
        equal = {numbers[name] for name in ("published", "confirmed", "delivered", "acked")}
        return len(equal) == 1 and numbers["published"] > 0 and numbers["lost"] == numbers["duplicates"] == 0


class Display:
    """A live table on a terminal, a line each second elsewhere."""

    def __init__(self, console: Console, counters: Counters, seconds: float) -> None:
        self.console = console
        self.counters = counters
        self.seconds = seconds
        self.bar = ProgressBar(TextColumn("{task.description}"), BarColumn(bar_width=44), TimeElapsedColumn())
        self.task = self.bar.add_task("publishing", total=seconds)
        self.live = Live(console=console, refresh_per_second=8) if console.is_terminal else None
        self.next_line_s = 1.0

    def __enter__(self) -> Display:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.live is not None:
            self.live.stop()

    def show(self, elapsed_s: float, phase: str) -> None:
        rates = self.counters.rates()
        if self.live is not None:
            self.bar.update(self.task, completed=min(elapsed_s, self.seconds), description=phase)
            self.live.update(Group(self.bar, self.table(rates)))
        elif elapsed_s >= self.next_line_s:
            self.next_line_s = int(elapsed_s) + 1.0
            self.console.print(self.line(elapsed_s, phase, rates), highlight=False, soft_wrap=True)

    def table(self, rates: dict[str, float]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for heading in ("", "per second", "total"):
            table.add_column(heading, justify="left" if not heading else "right")
        for name in COUNTED:
            table.add_row(name, f"{rates[name]:,.0f}", f"{self.counters.totals[name]:,}")
        waiting = self.counters.totals["published"] - self.counters.totals["delivered"]
        table.add_row("on the way", "", f"{max(0, waiting):,}")
        table.add_row("latency p50 / p99", "", self.latency())
        return table

    def line(self, elapsed_s: float, phase: str, rates: dict[str, float]) -> str:
        counts = "  ".join(f"{name} {self.counters.totals[name]:,}" for name in COUNTED)
        return f"{elapsed_s:4.0f} s  {phase}  {rates['delivered']:,.0f} msg/s  {counts}  latency {self.latency()}"

    def latency(self) -> str:
        return f"{self.counters.latency_ms(0.5):.1f} / {self.counters.latency_ms(0.99):.1f} ms"


@contextmanager
def running_clients(processes: list[BaseProcess]) -> Iterator[None]:
    for process in processes:
        process.start()
    try:
        yield
        for process in processes:
            process.join(STOP_TIMEOUT_S)
    finally:
        for process in processes:
            process.kill()
            process.join()


def run(url: str, options: argparse.Namespace, console: Console) -> Account:
    """Lets the clients work for the given time, waits until all is quiet, and gives their account."""
    context = multiprocessing.get_context("spawn")
    reports: Queue[Report] = context.Queue()
    stop_publishing, stop_consuming = context.Event(), context.Event()
    rate = options.rate // options.publishers
    publishers: list[BaseProcess] = [
        context.Process(target=publish, args=(url, number, rate, stop_publishing, reports))
        for number in range(options.publishers)
    ]
    consumers: list[BaseProcess] = [
        context.Process(target=consume, args=(url, number, stop_consuming, reports))
        for number in range(options.consumers)
    ]
    account = Account(Counters())
    with running_clients(publishers + consumers), Display(console, account.counters, options.seconds) as display:
        began = time.monotonic()
        while len(account.published) < options.publishers or len(account.seen) < options.consumers:
            elapsed_s = time.monotonic() - began
            if elapsed_s >= options.seconds:
                stop_publishing.set()
            if len(account.published) == options.publishers:
                stop_consuming.set()
            if elapsed_s >= options.seconds + DRAIN_TIMEOUT_S:
                raise DemoFailed("the clients do not come to an end")
            take_reports(reports, account)
            display.show(elapsed_s, "publishing" if not stop_publishing.is_set() else "draining  ")
    return account


def take_reports(reports: Queue[Report], account: Account) -> None:
    """All that have come, after waiting for one of them for a moment."""
    deadline = time.monotonic() + REFRESH_S
    while (left_s := deadline - time.monotonic()) > 0:
        try:
            report = reports.get(timeout=left_s)
        except queue.Empty:
            return
        if isinstance(report, Progress):
            account.counters.add(report)
        elif isinstance(report, Published):
            account.published[report.publisher] = report
        elif isinstance(report, Seen):
            account.seen.append(report)
        else:
            raise DemoFailed(f"{report.who} failed: {report.error}")


def print_account(account: Account, console: Console) -> None:
    table = Table(title="Account", title_justify="left", box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("")
    table.add_column("messages", justify="right")
    for name, number in account.lines():
        table.add_row(name, f"{number:,}")
    console.print(table)
    console.print("The account balances." if account.balances() else "THE ACCOUNT DOES NOT BALANCE.", highlight=False)


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=15.0, help="how long to publish")
    parser.add_argument("--publishers", type=int, default=2, choices=range(1, 17), metavar="1..16")
    parser.add_argument("--consumers", type=int, default=2, choices=range(1, 17), metavar="1..16")
    parser.add_argument("--rate", type=int, default=6000, help="messages a second, all publishers together")
    return parser.parse_args()


def main() -> int:
    options = parse_options()
    console = Console()
    # A SIGTERM ends the demo like ^C, so that it cleans up.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with tempfile.TemporaryDirectory(prefix="pandomq-demo-") as directory, running_broker(Path(directory)) as url:
            console.print(
                f"A broker listens on {url.rsplit('@')[-1].split('/')[0]}; {options.publishers} publishers and "
                f"{options.consumers} consumers (pika) use one durable queue.",
                highlight=False,
            )
            declare(url)
            account = run(url, options, console)
    except DemoFailed as failure:
        console.print(f"The demo failed: {failure}", highlight=False)
        return 2
    except KeyboardInterrupt:
        console.print("Interrupted.")
        return 130
    print_account(account, console)
    return 0 if account.balances() else 1


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
