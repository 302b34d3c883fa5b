"""An uninvolved client: it publishes and consumes all the time while other clients misbehave.

It works in a thread of its own, and notes how long each message took from its publish to its delivery.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType

from tests.support.client import Address, Connection

from .waiting import PATIENCE_S, wait_until


class Bystander:
    def __init__(self, address: Address) -> None:
        self.rounds_s: list[float] = []
        self._failure: BaseException | None = None
        self._over = threading.Event()
        self._connection = Connection.opened(address, heartbeat=0)
        self._thread = threading.Thread(target=self._work, daemon=True)

    def __enter__(self) -> Bystander:
        self._thread.start()
        self.goes_on()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: BaseException | TracebackType | None) -> None:
        if kind is None:
            self.goes_on()
        self._over.set()
        self._thread.join(PATIENCE_S)
        self._connection.drop()

    def goes_on(self) -> None:
        """Waits until two more messages have been published and delivered, of which the second began after this
        call."""
        wanted = len(self.rounds_s) + 2
        wait_until(lambda: self._failure is not None or len(self.rounds_s) >= wanted, "the bystander's next message")
        if self._failure is not None:
            raise AssertionError("somebody who did nothing wrong was harmed") from self._failure

    def slowest_s(self, since: int = 0) -> float:
        return max(self.rounds_s[since:], default=0.0)

    def _work(self) -> None:
        try:
            channel = self._connection.channel()
            queue = channel.declare_queue()
            channel.consume(queue, no_ack=True)
            while not self._over.is_set():
                began = time.monotonic()
                channel.publish(b"m", queue)
                channel.delivery()
                self.rounds_s.append(time.monotonic() - began)
                # The pause leaves the processor to others: this client is an observer, not a load.
                self._over.wait(0.002)
        except BaseException as failure:
            self._failure = failure
