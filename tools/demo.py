"""`make demo`: one broker made of several, under load; kill -9 of the root in the middle; an account of every message.

Publishers, consumers of shared queues and subscribers with private queues are on every broker, also on a secondary that
joins while they work. Everything it starts it ends: the brokers, the clients, the directory. The exit code is 0 only
if the account balances: what was sent was confirmed, nothing confirmed is lost, whatever was delivered twice said so,
and every subscriber whose broker lived heard each message once.
"""

from __future__ import annotations

import argparse
import queue
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from rich.console import Console

# `python tools/demo.py` puts only this directory on the path.
sys.path.insert(0, str(Path(__file__).parents[1]))

from tools.demo_account import Account
from tools.demo_clients import Heard, Listened, Progress, Published, Report, Seen, Subscribed
from tools.demo_crew import Crew
from tools.demo_display import Display, print_account
from tools.demo_grove import PRIMARIES, DemoFailed, Grove, grove

PATIENCE_S = 60.0
"""For all that is not publishing: clients begin, a broker catches up, queues are drained."""
REFRESH_S = 0.2
MOMENT_S = 0.5
JOIN_AT, KILL_AT, RETURN_AT = 0.1, 0.4, 0.65
"""Shares of the time in which is published."""


class Play:
    """What happens when: a secondary joins, the root is killed, another takes over, the old one returns."""

    def __init__(self, brokers: Grove, crew: Crew, account: Account, seconds: float, display: Display) -> None:
        self._grove = brokers
        self._crew = crew
        self._account = account
        self._display = display
        self._join_at_s, self._kill_at_s, self._return_at_s = (
            share * seconds for share in (JOIN_AT, KILL_AT, RETURN_AT)
        )
        self._acts: Iterator[None] = self._run()
        self._elapsed_s = 0.0
        self.over = False
        """All of it has happened."""

    def go_on(self, elapsed_s: float) -> None:
        self._elapsed_s = elapsed_s
        self._grove.insist_on_the_living()
        next(self._acts, None)

    def _run(self) -> Iterator[None]:
        while not self._grove.sight.root or self._elapsed_s < self._join_at_s:
            yield
        joined = self._grove.join()
        self._display.tell(self._elapsed_s, f"{joined.name} is started, a secondary")
        while joined.name not in self._grove.sight.in_sync:
            yield
        self._crew.come_to_the_secondary()
        self._display.tell(self._elapsed_s, f"{joined.name} has joined, and clients come to it")
        while not self._crew.at_work_everywhere(self._account) or self._elapsed_s < self._kill_at_s:
            yield
        # For a moment all of them work.
        moment_s = self._elapsed_s + MOMENT_S
        while self._elapsed_s < moment_s:
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
        while len(self._grove.sight.in_sync) <= PRIMARIES:
            yield
        self._display.tell(self._elapsed_s, f"{killed.name} has caught up: all four are in sync")
        self.over = True


@contextmanager
def at_work(crew: Crew) -> Iterator[None]:
    try:
        crew.begin()
        yield
        crew.join()
    finally:
        crew.end()


def run(brokers: Grove, options: argparse.Namespace, console: Console) -> Account:
    """Lets the clients work while the play goes on, waits until all is quiet, and gives their account."""
    crew = Crew(brokers, options.publishers, options.consumers, options.rate)
    account = Account()
    with at_work(crew), Display(console, account.counters, options.seconds) as display:
        play = Play(brokers, crew, account, options.seconds, display)
        started = began = time.monotonic()
        while not crew.all_reported(account):
            # Clients need a moment to begin, on a busy machine a long one: the play is for those who are there.
            began = began if crew.at_work(account) else time.monotonic()
            elapsed_s = time.monotonic() - began
            if time.monotonic() - started >= options.seconds + PATIENCE_S:
                raise DemoFailed("the play and its clients do not come to an end")
            play.go_on(elapsed_s)
            if elapsed_s >= options.seconds and play.over:
                crew.stop_publishing.set()
            if crew.all_published(account):
                crew.stop_consuming.set()
            take_reports(crew.reports, account)
            display.show(elapsed_s, "draining" if crew.stop_publishing.is_set() else "publishing", brokers.sight)
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
        elif isinstance(report, Subscribed):
            account.subscribed += 1
        elif isinstance(report, Heard):
            account.heard.append(report)
        elif isinstance(report, Listened):
            account.listened += 1
        else:
            raise DemoFailed(f"{report.who} failed: {report.error}")


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=20.0, help="how long to publish")
    parser.add_argument("--publishers", type=int, default=3, choices=range(1, 17), metavar="1..16")
    parser.add_argument("--consumers", type=int, default=3, choices=range(1, 17), metavar="1..16")
    parser.add_argument("--rate", type=int, default=2000, help="messages a second, all publishers together")
    return parser.parse_args()


def main() -> int:
    options = parse_options()
    console = Console()
    # A SIGTERM ends the demo like ^C, so that it cleans up; and so does ^C where a shell has it ignored.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        with tempfile.TemporaryDirectory(prefix="pandomq-demo-") as directory:
            console.print("Three brokers are being started…", highlight=False)
            with grove(Path(directory)) as brokers:
                console.print(
                    f"They listen on {', '.join(member.place.amqp for member in brokers.cluster.members)}. "
                    f"{options.publishers} publishers and {options.consumers} consumers (pika) share three queues; "
                    "each broker has a subscriber with a private one. A secondary will join, with clients of its own.",
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
