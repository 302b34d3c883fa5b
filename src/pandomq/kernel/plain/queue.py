"""A queue: messages in order of priority and sequence, and who may have them.

How a message leaves: taken by a consumer or by basic.get (then it is unacked and may come back), or for good: acked,
expired, overflowed, rejected, out of date, purged, withdrawn. For good always goes through `gone`, which logs it.
"""

from typing import TYPE_CHECKING, Any

from pandomq.kernel.constants import (
    DELIVERY_LIMIT,
    DROP_HEAD,
    EXPIRED,
    MAXLEN,
    NEVER_MS,
    REJECT_PUBLISH_DEAD_LETTER,
    REJECTED,
)
from pandomq.kernel.plain.last_values import LastValues
from pandomq.kernel.plain.message import Message
from pandomq.kernel.plain.queue_consumers import QueueConsumers
from pandomq.kernel.plain.ready import Ready
from pandomq.kernel.plain.ring import Entry

if TYPE_CHECKING:
    from pandomq.kernel.plain.channel import Channel
    from pandomq.kernel.plain.engine import Engine


class Queue(QueueConsumers):
    """See the contract."""

    def __init__(self, engine: "Engine", owner: Any, queue_id: int, logged: bool) -> None:
        super().__init__()
        self.engine = engine
        self.owner = owner
        self.queue_id = queue_id
        self.logged = logged
        self.next_sequence = 1
        self.unacked_count = 0
        self.deleted = False
        self.published = 0
        self.delivered = 0
        self.redelivered = 0
        self.acked = 0
        self.dropped = 0
        self.ready = Ready()
        self.is_active = False  # in the engine's list of queues to run
        self.gone_first = 0  # a range of dequeued sequences that the log batch has not written yet
        self.gone_count = 0
        self._armed_for_ms = NEVER_MS
        self._ttl_ms = -1
        self._length_max = -1
        self._bytes_max = -1
        self._overflow = DROP_HEAD
        self._dead_letters = False
        self._delivery_limit = -1
        self._counts_deliveries = False
        self._last_values: LastValues | None = None

    def configure(
        self,
        *,
        ttl_ms: int = -1,
        length_max: int = -1,
        bytes_max: int = -1,
        overflow: int = DROP_HEAD,
        dead_letters: bool = False,
        priority_max: int = 0,
        delivery_limit: int = -1,
        counts_deliveries: bool = False,
        last_value_key: bytes | None = None,
        single_active: bool = False,
    ) -> None:
        self._ttl_ms = ttl_ms
        self._length_max = length_max
        self._bytes_max = bytes_max
        self._overflow = overflow
        self._dead_letters = dead_letters
        self._delivery_limit = delivery_limit
        self._counts_deliveries = counts_deliveries
        if self.next_sequence == 1:
            self.ready.priority_max = priority_max
            self._last_values = None if last_value_key is None else LastValues(last_value_key)
        if not self.consumer_count:
            self.single_active = single_active
        self.activate_if_ready()

    @property
    def ready_count(self) -> int:
        return self.ready.count

    @property
    def ready_bytes(self) -> int:
        return self.ready.bytes

    # --- in

    def refuses(self, message: Message, now_ms: int) -> bool:
        """Whether the overflow rule keeps the message out; if it is one for the dead, it is among them."""
        if self._overflow == DROP_HEAD or not self._overflows(1, message.body_size):
            return False
        self._hand_out(now_ms)
        if not self._overflows(1, message.body_size):
            return False
        if self._overflow == REJECT_PUBLISH_DEAD_LETTER and self._dead_letters:
            self.engine.dead.append((self, message, MAXLEN, 0))
        return True

    def insert(self, message: Message, now_ms: int) -> None:
        """Takes the message under the next sequence."""
        entry = Entry(message, self.next_sequence, self.engine.term, self._deadline_ms(message, now_ms))
        self.next_sequence += 1
        self.published += 1
        self.engine.hold(message)
        self.ready.push(entry)
        if self._last_values is not None:
            self._supersede(entry, log=True)
        if self._overflow == DROP_HEAD and self._overflows(0, 0):
            self._hand_out(now_ms)
            self._drop_surplus()
        self.activate()

    def restore(self, message: Message, sequence: int, term: int, now_ms: int) -> None:
        """Takes the message at its old place, unlogged and unlimited."""
        entry = Entry(message, sequence, term, self._deadline_ms(message, now_ms))
        self.engine.hold(message)
        if sequence >= self.next_sequence:
            self.next_sequence = sequence + 1
            self.ready.push(entry)
        else:
            self.ready.give_back(entry)
        if self._last_values is not None:
            self._supersede(entry, log=False)
        self._watch_time()
        self.activate()

    def requeue(self, entry: Entry) -> None:
        """An unacked message comes back, if it may."""
        self.unacked_count -= 1
        if self.deleted:
            self.engine.let_go(entry.message)
            return
        entry.redelivered = True
        entry.delivery_count += 1
        if 0 <= self._delivery_limit < entry.delivery_count:
            self._die(entry, DELIVERY_LIMIT)
            return
        self.ready.give_back(entry)
        if self._last_values is not None:
            self._supersede(entry, log=True)
        self.activate()

    def _deadline_ms(self, message: Message, now_ms: int) -> int:
        ttl_ms, expiration_ms = self._ttl_ms, message.expiration_ms
        if ttl_ms < 0:
            return NEVER_MS if expiration_ms < 0 else now_ms + expiration_ms
        return now_ms + (ttl_ms if expiration_ms < 0 else min(ttl_ms, expiration_ms))

    def _overflows(self, count: int, size: int) -> bool:
        # Whether the ready messages, and so much more, are beyond a limit.
        ready = self.ready
        return 0 <= self._length_max < ready.count + count or 0 <= self._bytes_max < ready.bytes + size

    def _supersede(self, entry: Entry, log: bool) -> None:
        assert self._last_values is not None
        sequence = self._last_values.arrive(entry)
        old = None if sequence is None else self.ready.remove(sequence)
        if old is None:
            return
        self.dropped += 1
        if log:
            self.gone(old)
        else:
            self.forget(old)

    # --- out

    def run(self, now_ms: int) -> None:
        """What a deliver does for one queue."""
        self._hand_out(now_ms)
        if self._overflow == DROP_HEAD and self._overflows(0, 0):
            self._drop_surplus()
        self.expire(now_ms)

    def _hand_out(self, now_ms: int) -> None:
        # A message whose time comes this very moment may still be delivered: that is what a TTL of 0 means.
        ready = self.ready
        while ready.count:
            if ready.with_deadline and ready.first().deadline_ms < now_ms:
                self._die(ready.pop_first(), EXPIRED)
                continue
            consumer = self.rotation.next()
            if consumer is None:
                return
            consumer.deliver(ready.pop_first(), now_ms)

    def take(self, channel: "Channel", no_ack: bool, now_ms: int) -> tuple[int, bool, Message, int] | None:
        self.expire(now_ms)
        if not self.ready.count:
            return None
        entry = self.ready.pop_first()
        message = self.delivered_form(entry)
        tag = channel.next_tag()
        redelivered = entry.redelivered
        if no_ack:
            self.gone(entry)
        else:
            channel.keep_unacked(tag, self, entry, None, now_ms)
        self._watch_time()
        return tag, redelivered, message, self.ready.count

    def delivered_form(self, entry: Entry) -> Message:
        """The message as its receiver sees it; counts the delivery."""
        engine = self.engine
        engine.delivered += 1
        self.delivered += 1
        if entry.redelivered:
            engine.redelivered += 1
            self.redelivered += 1
        if self._counts_deliveries and entry.delivery_count:
            copy: Message = engine.hooks.redelivered_copy(entry.message, entry.delivery_count)
            return copy
        return entry.message

    def acknowledge(self, entry: Entry) -> None:
        self.unacked_count -= 1
        self.acked += 1
        self.gone(entry)

    def reject(self, entry: Entry) -> None:
        self.unacked_count -= 1
        self._die(entry, REJECTED)

    def withdraw(self, sequence: int) -> Message | None:
        entry = self.ready.remove(sequence)
        if entry is None:
            return None
        self.gone(entry)
        self._watch_time()
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
        self._watch_time()

    def delete(self) -> int:
        self.deleted = True
        entries = self.ready.clear()
        for entry in entries:
            self.forget(entry)
        for consumer in self.consumers():
            consumer.cancel()
        return len(entries)

    def gone(self, entry: Entry) -> None:
        """The message left the queue for good."""
        if self.logged and entry.message.persistent and not self.deleted:
            self.engine.log.dequeue(self, entry.sequence)
        self.forget(entry)

    def forget(self, entry: Entry) -> None:
        if self._last_values is not None:
            self._last_values.leave(entry.message, entry.sequence)
        self.engine.let_go(entry.message)

    def _die(self, entry: Entry, reason: int) -> None:
        self.dropped += 1
        if self._dead_letters and not self.deleted:
            self.engine.dead.append((self, entry.message, reason, entry.delivery_count))
        self.gone(entry)

    def _drop_surplus(self) -> None:
        # From the head: the message that would be delivered next goes first, even if it has the highest priority.
        while self._overflows(0, 0) and self.ready.count:
            self._die(self.ready.pop_first(), MAXLEN)

    # --- time

    def expire(self, now_ms: int) -> None:
        ready = self.ready
        while ready.with_deadline:
            late = next((entry for entry in ready.heads() if entry.deadline_ms <= now_ms), None)
            if late is None:
                break
            ready.remove(late.sequence)
            self._die(late, EXPIRED)
        self._watch_time()

    @property
    def next_deadline_ms(self) -> int:
        return self.ready.next_deadline_ms

    @property
    def timer_armed(self) -> bool:
        return self._armed_for_ms != NEVER_MS

    @timer_armed.setter
    def timer_armed(self, armed: bool) -> None:
        self._armed_for_ms = min(self.next_deadline_ms, NEVER_MS - 1) if armed else NEVER_MS

    def _watch_time(self) -> None:
        # A timer for a later time than needed is as good as none.
        if self.ready.with_deadline and self.next_deadline_ms < self._armed_for_ms:
            self._armed_for_ms = NEVER_MS
            self.engine.waiting_for_time.append(self)

    # --- views

    def snapshot(self) -> list[tuple[int, int, int, int, bool, Message]]:
        return [
            (entry.sequence, entry.term, entry.deadline_ms, entry.delivery_count, entry.redelivered, entry.message)
            for entry in self.ready
        ]

    def check(self) -> None:
        self.check_consumers()
        self.ready.check()
        assert self.unacked_count >= 0
        assert all(entry.sequence < self.next_sequence for entry in self.ready)
        assert not self.deleted or not self.ready.count
        assert self.gone_count == 0 or self in self.engine.log.dequeuing
