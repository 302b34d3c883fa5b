"""The demo's clients as processes: those of the three primaries from the beginning, those of the secondary later."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from typing import Any

from tools.demo_account import Account
from tools.demo_clients import Report, consume, publish
from tools.demo_grove import PRIMARIES, Grove
from tools.demo_subscribers import subscribe

JOIN_TIMEOUT_S = 15.0
INTERRUPTIONS = (signal.SIGINT, signal.SIGTERM)


class Crew:
    def __init__(self, brokers: Grove, publishers: int, consumers: int, rate: int) -> None:
        """So many at the primaries, and one of each more at the secondary. `rate` is that of all publishers."""
        self._brokers = brokers
        self._publishers, self._consumers = publishers, consumers
        self._rate = max(1, rate // (publishers + 1))
        self._context = multiprocessing.get_context("spawn")
        self.reports: Queue[Report] = self._context.Queue()
        self.stop_publishing, self.stop_consuming = self._context.Event(), self._context.Event()
        self._end = self._context.Event()
        self._processes: list[BaseProcess] = []

    def begin(self) -> None:
        """One subscriber for each broker; publishers and consumers are spread over them."""
        for number in range(self._publishers):
            self._publish(self._brokers.urls_from(number), number)
        for number in range(self._consumers):
            self._start(consume, self._brokers.urls_from(number), number, self.stop_consuming)
        places = [self._brokers.urls_from(number) for number in range(PRIMARIES)]
        self._start(subscribe, places, self.stop_consuming)

    def come_to_the_secondary(self) -> None:
        urls = [self._brokers.secondary_url]
        self._publish(urls, self._publishers)
        self._start(consume, urls, self._consumers, self.stop_consuming)
        self._start(subscribe, [urls], self.stop_consuming)

    def at_work(self, account: Account) -> bool:
        """Those of the primaries have all begun."""
        return account.subscribed >= PRIMARIES and account.counters.totals["acked"] > 0

    def at_work_everywhere(self, account: Account) -> bool:
        """Those of the secondary, too."""
        return account.subscribed > PRIMARIES

    def all_published(self, account: Account) -> bool:
        return len(account.published) == self._publishers + 1

    def all_reported(self, account: Account) -> bool:
        """Everybody has had the last word: also the subscribers, of which there are two processes."""
        return self.all_published(account) and len(account.seen) == self._consumers + 1 and account.listened == 2

    def join(self) -> None:
        for process in self._processes:
            process.join(JOIN_TIMEOUT_S)

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.join()

    def _publish(self, urls: list[str], number: int) -> None:
        self._start(publish, urls, number, self._rate, self.stop_publishing)

    def _start(self, work: Callable[..., None], *arguments: Any) -> None:
        process = self._context.Process(target=work, args=(*arguments, self._end, self.reports))
        # An interruption waits until it is known that there is one more to be ended.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
        try:
            process.start()
            self._processes.append(process)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
