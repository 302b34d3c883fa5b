"""How messages leave a queue for good: acked, expired, overflowed, rejected, out of date, purged, withdrawn, dropped.

Whatever leaves goes through `gone`, which logs it, or through `forget`, if the log knows it anyway.
"""

from typing import TYPE_CHECKING

from pandomq.kernel.constants import EXPIRED, MAXLEN, NEVER_MS
from pandomq.kernel.plain.message import Message
from pandomq.kernel.plain.queue_consumers import QueueConsumers
from pandomq.kernel.plain.ready import Ready
from pandomq.kernel.plain.ring import Entry
from pandomq.kernel.plain.settings import Settings

if TYPE_CHECKING:
    from pandomq.kernel.plain.last_values import LastValues


class QueueExits(QueueConsumers):
    """The half of a queue that faces its end."""

    queue_id: int
    logged: bool

    def __init__(self) -> None:
        super().__init__()
        self.ready = Ready()
        self.settings = Settings()
        self.last_values: LastValues | None = None
        self.deleted = False
        self.dropped = 0
        self.gone_first = 0  # a range of dequeued sequences that the log batch has not written yet
        self.gone_count = 0
        self._armed_for_ms = NEVER_MS

    def gone(self, entry: Entry) -> None:
        """The message left the queue for good."""
        if self.logged and entry.message.persistent and not self.deleted:
            self.engine.log.dequeue(self, entry.sequence)
        self.forget(entry)

    def forget(self, entry: Entry) -> None:
        if self.last_values is not None:
            self.last_values.leave(entry)
        self.engine.let_go(entry.message)

    def die(self, entry: Entry, reason: int) -> None:
        """The message goes to the dead letters, if there is such a thing here."""
        self.dropped += 1
        if self.settings.dead_letters and not self.deleted:
            self.engine.dead.append((self, entry.message, reason, entry.delivery_count))
        self.gone(entry)

    def drop_surplus(self) -> None:
        # From the head: the message that would be delivered next goes first, even if it has the highest priority.
        while self.ready.count and self.settings.overflowed_by(self.ready, 0, 0):
            self.die(self.ready.pop_first(), MAXLEN)

    def withdraw(self, sequence: int) -> Message | None:
        entry = self.ready.remove(sequence)
        if entry is None:
            return None
        self.gone(entry)
        self.watch_time()
        return entry.message

    def purge(self) -> int:
        entries = self.ready.clear()
        for entry in entries:
            self.gone(entry)
        return len(entries)

    def drop(self, sequence_first: int, count: int) -> None:
        # A range may be far longer than what is left of it.
        if count > self.ready.count:
            sequences = [entry.sequence for entry in self.ready if 0 <= entry.sequence - sequence_first < count]
        else:
            sequences = list(range(sequence_first, sequence_first + count))
        for sequence in sequences:
            entry = self.ready.remove(sequence)
            if entry is not None:
                self.forget(entry)
        self.watch_time()

    # --- time

    def expire(self, now_ms: int) -> None:
        ready = self.ready
        while ready.with_deadline:
            late = next((entry for entry in ready.heads() if entry.deadline_ms <= now_ms), None)
            if late is None:
                break
            ready.remove(late.sequence)
            self.die(late, EXPIRED)
        self.watch_time()

    @property
    def next_deadline_ms(self) -> int:
        return self.ready.next_deadline_ms

    @property
    def timer_armed(self) -> bool:
        return self._armed_for_ms != NEVER_MS

    @timer_armed.setter
    def timer_armed(self, armed: bool) -> None:
        self._armed_for_ms = min(self.next_deadline_ms, NEVER_MS - 1) if armed else NEVER_MS

    def watch_time(self) -> None:
        # A timer for a later time than needed is as good as none.
        if self.ready.with_deadline and self.next_deadline_ms < self._armed_for_ms:
            self._armed_for_ms = NEVER_MS
            self.engine.waiting_for_time.append(self)
