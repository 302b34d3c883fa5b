"""The demo's clients as processes: those of the three primaries from the beginning, those of the secondary later."""

from __future__ import annotations

import argparse
import multiprocessing
import signal
from collections.abc import Callable, Sequence
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

from tools.demo.account import Account
from tools.demo.connecting import Broker
from tools.demo.consumers import consume
from tools.demo.grove import PRIMARIES, Grove
from tools.demo.publishers import publish
from tools.demo.readers import read
from tools.demo.subscribers import subscribe
from tools.demo.words import HEARD_KEY, NOBODYS_KEY, Report

JOIN_TIMEOUT_S = 15.0
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)
PLACES = 2
"""The processes with subscribers and with readers: one of each for the primaries, one for the secondary."""


class Crew:
    def __init__(self, grove: Grove, options: argparse.Namespace, ledgers: Path) -> None:
        """Creates so many clients at the primaries, and one more of each kind at the secondary. The rate is that of all
        publishers."""
        ledgers.mkdir()
        self._ledgers = ledgers
        self._grove = grove
        self._publishers: int = options.publishers
        self._consumers: int = options.consumers
        self._rate = max(1, options.rate // (self._publishers + 1))
        self._keys = [HEARD_KEY] * PRIMARIES
        """The keys with which the subscribers bind their queues."""
        if options.deaf:
            self._keys[-1] = NOBODYS_KEY
        self._context = multiprocessing.get_context("spawn")
        self.reports: Queue[Report] = self._context.Queue()
        self.stop_publishing, self.stop_consuming = self._context.Event(), self._context.Event()
        self._end = self._context.Event()
        self._processes: list[BaseProcess] = []

    def begin(self) -> None:
        """One subscriber for each broker; publishers and consumers are spread over them."""
        for number in range(self._publishers):
            self._publish(self._grove.primaries_from(number), number)
        for number in range(self._consumers):
            self._consume(self._grove.primaries_from(number), number)
        places = [(self._grove.primaries_from(number), key) for number, key in enumerate(self._keys)]
        self._start(subscribe, places, self.stop_consuming)
        self._start(read, self._grove.primaries_from(0), self.stop_consuming)

    def come_to_the_secondary(self) -> None:
        brokers = [self._grove.secondary]
        self._publish(brokers, self._publishers)
        self._consume(brokers, self._consumers)
        self._start(subscribe, [(brokers, HEARD_KEY)], self.stop_consuming)
        self._start(read, brokers, self.stop_consuming)

    def at_work(self, account: Account) -> bool:
        """Whether all clients of the primaries have begun."""
        totals = account.counters.totals
        return account.subscribed >= PRIMARIES and totals["acked"] > 0 and totals["read"] > 0

    def at_work_everywhere(self, account: Account) -> bool:
        """Whether all clients of the secondary have begun, too."""
        return account.subscribed > PRIMARIES

    def all_published(self, account: Account) -> bool:
        return len(account.published) == self._publishers + 1

    def all_reported(self, account: Account) -> bool:
        """Whether all clients have sent their last report."""
        return (
            self.all_published(account)
            and len(account.seen) == self._consumers + 1
            and account.listened == PLACES
            and len(account.read) == PLACES
        )

    def join(self) -> None:
        for process in self._processes:
            process.join(JOIN_TIMEOUT_S)

    def end(self) -> None:
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()

    def _publish(self, brokers: Sequence[Broker], number: int) -> None:
        self._start(publish, brokers, number, self._rate, self._ledgers, self.stop_publishing)

    def _consume(self, brokers: Sequence[Broker], number: int) -> None:
        self._start(consume, brokers, number, self._ledgers, self.stop_consuming)

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        # The process is a daemon, so that it ends even if the demo is interrupted while it ends.
        process = self._context.Process(target=work, args=(*arguments, self._end, self.reports), daemon=True)
        # An interruption waits until the new process is recorded as one to be ended.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
        try:
            process.start()
            self._processes.append(process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
