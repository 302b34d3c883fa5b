"""Whether messages in outlets have come out at the other ends; until then their publishers get no confirm.

If they were confirmed at once, a root that crashes could lose copies that no client would send again. Now a client that
publishes with confirms to subscribers on other brokers sends again what was not confirmed, and so it reaches them (the
brokers drop repeated messages). A broker that does not report for long is not waited for, until it has caught up.

Brokers report the number of messages (`Outlet.received_count`). The messages that a batch has put into outlets are
noted when the batch is sealed, and crossed off in that order: the kernel knows which publishes of which channels are in
which batch.
"""

from collections import deque
from typing import TYPE_CHECKING, Final

from pandomq.limits import RECEIPT_WAIT_MS

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.queues.outlets import Outlet

WAITING_MAX: Final = 100_000
"""Batches that are noted. Beyond it the first is taken as received: confirms may lose their meaning for a publisher
with that many unconfirmed messages if the root crashes, but memory stays bounded."""


class Receipts:
    __slots__ = ("_broker", "_outlets", "_waiting")

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._outlets: dict[Outlet, int] = {}
        """How many messages each had when a batch was last sealed."""
        self._waiting: deque[tuple[int, Outlet, int, int]] = deque()
        """The batch, one of its outlets, how many messages that had after it, and when."""

    def add(self, outlet: "Outlet") -> None:
        self._outlets[outlet] = 0

    def sealed(self, index: int) -> None:
        """To be called before the kernel's `sealed`, which is called from here."""
        if self._outlets:
            self._note()
            self._broker.engine.sealed(index)
            self.release()
        else:
            self._broker.engine.sealed(index)

    def _note(self) -> None:
        batch, now_ms = self._broker.engine.batch, self._broker.now_ms
        for outlet, before in list(self._outlets.items()):
            count = outlet.kernel.published
            if outlet.kernel.deleted:
                del self._outlets[outlet]
            elif count != before:
                self._outlets[outlet] = count
                if not outlet.silent:
                    self._waiting.append((batch, outlet, count, now_ms))
                    self._broker.timers.watch_receipts(now_ms + RECEIPT_WAIT_MS)
        while len(self._waiting) > WAITING_MAX:
            self._waiting.popleft()

    def release(self) -> None:
        """Between batches, or in one: messages may have come out."""
        waiting = self._waiting
        while waiting and _is_out(waiting[0][1], waiting[0][2]):
            waiting.popleft()
        self._broker.engine.outlets_received(waiting[0][0] - 1 if waiting else self._broker.engine.batch - 1)

    def overdue(self, now_ms: int) -> None:
        """Brokers that have not reported for too long become silent."""
        while self._waiting and self._waiting[0][3] + RECEIPT_WAIT_MS <= now_ms:
            _, outlet, count, _ = self._waiting.popleft()
            outlet.silent = outlet.received_count < count
        self.release()
        if self._waiting:
            self._broker.timers.watch_receipts(self._waiting[0][3] + RECEIPT_WAIT_MS)


def _is_out(outlet: "Outlet", count: int) -> bool:
    return outlet.received_count >= count or outlet.silent or outlet.kernel.deleted
