"""An uninvolved client that measures its longest round, without the time in which it or the broker had no processor."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from .configured_broker import ConfiguredBroker
from .waiting import PATIENCE_S, wait_until

ROUNDS_AFTER = 20


def waited_s(process: int, thread: int) -> float:
    """Returns how long the thread was ready to run while something else ran."""
    return int(Path(f"/proc/{process}/task/{thread}/schedstat").read_text().split()[1]) / 1e9


class Bystander:
    """Publishes numbers, and expects each of them back before the next."""

    def __init__(self, broker: ConfiguredBroker) -> None:
        self._pid = broker.process.pid
        self._connection = broker.open()
        self._over = threading.Event()
        self._failure: BaseException | None = None
        self.rounds = 0
        self.longest_s = 0.0
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            channel = self._connection.channel()
            queue = channel.declare_queue()
            channel.consume(queue, no_ack=True)
            while not self._over.is_set():
                began_s, idle_s = time.monotonic(), self._idle_s()
                body = b"%d" % self.rounds
                channel.publish(body, queue)
                assert channel.delivery().body == body
                self.longest_s = max(self.longest_s, time.monotonic() - began_s - (self._idle_s() - idle_s))
                self.rounds += 1
                self._over.wait(0.002)
        except BaseException as failure:
            self._failure = failure

    def _idle_s(self) -> float:
        return waited_s(self._pid, self._pid) + waited_s(threading.get_native_id(), threading.get_native_id())

    def goes_on(self) -> None:
        wanted = self.rounds + ROUNDS_AFTER
        wait_until(lambda: self._failure is not None or self.rounds >= wanted, "the bystander's next messages")
        if self._failure is not None:
            raise AssertionError("somebody who did nothing wrong was harmed") from self._failure

    def leave(self) -> None:
        self._over.set()
        self._thread.join(PATIENCE_S)
        self._connection.drop()
