"""`make demo`: three brokers under load, kill -9 of the root in the middle, and an account of every message.

Everything it starts it ends: the brokers, the clients, the directory. The exit code is 0 only if the account balances:
what was sent was confirmed, nothing confirmed is lost, and whatever was delivered twice said so.
"""

from __future__ import annotations

import argparse
import multiprocessing
import queue
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from rich.console import Console

# `python tools/demo.py` puts only this directory on the path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.demo_account import Account
from tools.demo_clients import Progress, Published, Report, Seen, consume, publish
from tools.demo_display import Display, print_account
from tools.demo_grove import DemoFailed, Grove, grove

JOIN_TIMEOUT_S = 15.0
DRAIN_TIMEOUT_S = 30.0
REFRESH_S = 0.2
KILL_AT, RETURN_AT = 0.33, 0.6
"""Shares of the time in which is published."""


class Play:
    """What happens when: the kill, the takeover, the return."""

    def __init__(self, brokers: Grove, seconds: float, display: Display) -> None:
        self._grove = brokers
        self._display = display
        self._kill_at_s, self._return_at_s = KILL_AT * seconds, RETURN_AT * seconds
        self._acts: Iterator[None] = self._run()
        self._elapsed_s = 0.0
        self.over = False
        """All of it has happened."""

    def go_on(self, elapsed_s: float) -> None:
        self._elapsed_s = elapsed_s
        self._grove.insist_on_the_living()
        next(self._acts, None)

    def _run(self) -> Iterator[None]:
        while not self._grove.sight.root or self._elapsed_s < self._kill_at_s:
            yield
        killed = self._grove.kill_root()
        self._display.tell(self._elapsed_s, f"kill -9 {killed.name}, the root")
        while self._grove.sight.root in ("", killed.name):
            yield
        sight = self._grove.sight
        self._display.tell(self._elapsed_s, f"{sight.root} is the root, term {sight.term}")
        while self._elapsed_s < self._return_at_s:
            yield
        self._grove.bring_back(killed)
        self._display.tell(self._elapsed_s, f"{killed.name} is started again")
        while not self._grove.sight.whole:
            yield
        self._display.tell(self._elapsed_s, f"{killed.name} has caught up: all three are in sync")
        self.over = True


@contextmanager
def running_clients(processes: list[BaseProcess]) -> Iterator[None]:
    for process in processes:
        process.start()
    try:
        yield
        for process in processes:
            process.join(JOIN_TIMEOUT_S)
    finally:
        for process in processes:
            process.kill()
            process.join()


def run(brokers: Grove, options: argparse.Namespace, console: Console) -> Account:
    """Lets the clients work while the play goes on, waits until all is quiet, and gives their account."""
    context = multiprocessing.get_context("spawn")
    reports: Queue[Report] = context.Queue()
    stop_publishing, stop_consuming, end = context.Event(), context.Event(), context.Event()
    rate = max(1, options.rate // options.publishers)
    clients: list[BaseProcess] = [
        context.Process(target=publish, args=(brokers.urls, number, rate, stop_publishing, end, reports))
        for number in range(options.publishers)
    ]
    clients += [
        context.Process(target=consume, args=(brokers.urls, number, stop_consuming, end, reports))
        for number in range(options.consumers)
    ]
    account = Account()
    with running_clients(clients), Display(console, account.counters, options.seconds) as display:
        play = Play(brokers, options.seconds, display)
        began = time.monotonic()
        while len(account.published) < options.publishers or len(account.seen) < options.consumers:
            elapsed_s = time.monotonic() - began
            if elapsed_s >= options.seconds + DRAIN_TIMEOUT_S:
                raise DemoFailed("the play and its clients do not come to an end")
            play.go_on(elapsed_s)
            if elapsed_s >= options.seconds and play.over:
                stop_publishing.set()
            if len(account.published) == options.publishers:
                stop_consuming.set()
            take_reports(reports, account)
            display.show(elapsed_s, "draining" if stop_publishing.is_set() else "publishing", brokers.sight)
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


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to publish")
    parser.add_argument("--publishers", type=int, default=2, choices=range(1, 17), metavar="1..16")
    parser.add_argument("--consumers", type=int, default=2, choices=range(1, 17), metavar="1..16")
    parser.add_argument("--rate", type=int, default=2000, help="messages a second, all publishers together")
    return parser.parse_args()


def main() -> int:
    options = parse_options()
    console = Console()
    # A SIGTERM ends the demo like ^C, so that it cleans up.
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        with tempfile.TemporaryDirectory(prefix="pandomq-demo-") as directory:
            console.print("Three brokers are being started…", highlight=False)
            with grove(Path(directory)) as brokers:
                console.print(
                    f"They listen on {', '.join(member.place.amqp for member in brokers.cluster.members)}. "
                    f"{options.publishers} publishers and {options.consumers} consumers (pika) use three queues.",
                    highlight=False,
                )
                brokers.declare()
                account = run(brokers, options, console)
    except DemoFailed as failure:
        console.print(f"The demo failed: {failure}", highlight=False, markup=False)
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
