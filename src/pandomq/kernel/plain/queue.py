"""A queue: messages in order of priority and sequence, and the consumers that read them.

A delivered message is unacked; then it comes back to its place, or leaves for good (queue_exits.py).
"""

from typing import TYPE_CHECKING, Any

from pandomq.kernel.constants import (
    CHUNK_AGE_MS,
    CHUNK_BYTES,
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
from pandomq.kernel.plain.page import Page, make_page
from pandomq.kernel.plain.queue_stream import QueueStream
from pandomq.kernel.plain.ring import RingEntry
from pandomq.kernel.plain.settings import Settings

if TYPE_CHECKING:
    from pandomq.kernel.plain.channel import Channel
    from pandomq.kernel.plain.engine import Engine


class Queue(QueueStream):
    """See the contract."""

    def __init__(self, engine: "Engine", owner: Any, queue_id: int, logged: bool) -> None:
        super().__init__(engine)
        self.owner = owner
        self.queue_id = queue_id
        self.logged = logged
        self.local = False  # while several brokers keep the log, it has no record of the messages that enter
        self.mirror = False  # its messages come from the root, under the root's delivery tags
        self.unacked_count = 0
        self.delivered = 0
        self.redelivered = 0
        self.acked = 0
        self._awaited_count = 0  # messages that have a place here, and enter once they are committed
        self._awaited_bytes = 0

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
        withdrawable: bool = False,
        synced: bool = False,
        local: bool = False,
        mirror: bool = False,
        outlet: bool = False,
        stream: bool = False,
        chunk_bytes: int = CHUNK_BYTES,
        chunk_age_ms: int = CHUNK_AGE_MS,
    ) -> None:
        if self.becomes_stream(stream, chunk_bytes, chunk_age_ms):
            return
        self.settings = Settings(
            ttl_ms, length_max, bytes_max, overflow, dead_letters, delivery_limit, counts_deliveries
        )
        limited = length_max >= 0 or bytes_max >= 0
        self.may_refuse = limited and overflow != DROP_HEAD
        self.may_drop = limited and overflow == DROP_HEAD
        self.synced = synced
        self.local = local
        self.is_outlet = outlet
        self.engine.has_outlets = self.engine.has_outlets or outlet
        if self.next_sequence == 1:
            if not 0 <= priority_max <= 255:
                raise ValueError(f"priority_max is {priority_max}")
            self.ready.priority_max = priority_max
            self.last_values = None if last_value_key is None else LastValues(last_value_key)
            if not self.consumer_count:
                self.mirror = mirror
            self.withdrawable = withdrawable or self.mirror  # its messages stay in memory
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
        """For a queue that may refuse: whether it does. A refused message goes to the dead letters if the queue has
        them."""
        settings = self.settings
        count, size_bytes = self._awaited_count + 1, self._awaited_bytes + message.body_size
        if not settings.overflowed_by(self.ready, count, size_bytes):
            return False
        self._hand_out(now_ms)
        if not settings.overflowed_by(self.ready, count, size_bytes):
            return False
        if self.trace is not None:
            self.trace.refused(self, message)
        if settings.overflow == REJECT_PUBLISH_DEAD_LETTER and settings.dead_letters:
            self.engine.dead.append((self, message, MAXLEN, 0))
        return True

    def insert(self, message: Message, now_ms: int) -> None:
        """Takes the message under the next sequence."""
        if self.stream is not None:
            self.stream.insert(message, now_ms)
            return
        engine = self.engine
        entry = RingEntry(message, self.next_sequence, engine.term, self.settings.deadline_ms(message, now_ms))
        self.next_sequence += 1
        self.published += 1
        engine.hold(message)
        if self.trace is not None:
            self.trace.published(self, message, entry.sequence)
        if not self.ready.count and not self.waits_for_log:
            # No message waits before it: a ready consumer gets the message at once, without a place in the queue.
            consumer = self.rotation.next()
            if consumer is not None:
                if self.last_values is not None and not consumer.no_ack:
                    # It makes no waiting message out of date; but it may come back.
                    self.last_values.arrive(self.last_values.key_of(message), entry.sequence)
                consumer.deliver(entry, now_ms)
                return
        self.ready.push(entry)
        self._arrived(entry, log=True)
        if self.may_drop and self.settings.overflowed_by(self.ready, 0, 0):
            self._hand_out(now_ms)
            self.drop_surplus()
        elif self.ready.count == 1:
            self._hand_out(now_ms)
        self.activate_if_ready()

    def mirror_message(self, message: Message, tag: int, era: int, redelivered: bool, now_ms: int) -> None:
        """Takes a message that the root delivered. The root enforces the message's TTL."""
        entry = RingEntry(message, tag, era, NEVER_MS)
        entry.redelivered = redelivered
        self.published += 1
        self.engine.hold(message)
        follows = tag >= self.next_sequence
        self.next_sequence = max(self.next_sequence, tag + 1)
        consumer = self.rotation.next() if not self.ready.count else None
        if consumer is not None:
            consumer.deliver(entry, now_ms)
            return
        (self.ready.push if follows else self.ready.give_back)(entry)
        self.activate()

    def restore(self, message: Message, sequence: int, term: int, now_ms: int) -> None:
        """Takes the message at its old place, unlogged and unlimited."""
        if self.stream is not None:
            self.stream.restore(message, sequence, now_ms)
            return
        entry = RingEntry(message, sequence, term, self.settings.deadline_ms(message, now_ms))
        message.kept |= self.logged
        self.engine.hold(message)
        if sequence >= self.next_sequence:
            self.next_sequence = sequence + 1
            self.ready.push(entry)
        else:
            self.ready.give_back(entry)
        self._arrived(entry, log=False)
        self.watch_time()
        self.activate()

    def await_message(self, message: Message, now_ms: int) -> int:
        """Gives the message a sequence, under which it is admitted later."""
        if self.stream is not None:
            # It has a place, and is invisible until the log has it.
            self.stream.insert(message, now_ms)
            return self.next_sequence - 1
        self._awaited_count += 1
        self._awaited_bytes += message.body_size
        self.next_sequence += 1
        return self.next_sequence - 1

    def admit(self, message: Message, sequence: int, term: int, deadline_ms: int) -> None:
        if self.stream is not None:
            return
        self._awaited_count -= 1
        self._awaited_bytes -= message.body_size
        if self.deleted:
            return
        self.published += 1
        if self.trace is not None:
            self.trace.published(self, message, sequence)
        self._come_back(RingEntry(message, sequence, term, deadline_ms), log=True)

    def reinstate(
        self, message: Message, sequence: int, term: int, deadline_ms: int, delivery_count: int, redelivered: bool
    ) -> None:
        entry = RingEntry(message, sequence, term, deadline_ms)
        entry.delivery_count = delivery_count
        entry.redelivered = redelivered
        message.kept |= self.logged
        self.next_sequence = max(self.next_sequence, sequence + 1)
        self._come_back(entry, log=False)
        self.watch_time()

    def _come_back(self, entry: RingEntry, log: bool) -> None:
        self.engine.hold(entry.message)
        self.ready.give_back(entry)
        self._arrived(entry, log)
        self.activate()

    def reinstate_page(self, index: tuple[bytes, bytes], owner: Any) -> Page:
        page = make_page(self, index[0], owner)
        page.take_state(index[1])
        if (page.keys is None) != (self.last_values is None) or self.withdrawable:
            raise ValueError("not a page of this queue")
        self.ready.reinstate(page)
        self.next_sequence = max(self.next_sequence, page.last + 1)
        if self.last_values is not None and page.keys is not None:
            for position in list(page.positions()):
                self._supersede(page.keys[position], page.first + page.offset(position), log=False)
        self.watch_time()
        self.activate()
        return page

    def suspect(self) -> None:
        for entry in self.ready.entries():
            entry.redelivered = True
        for page in self.pages():
            page.suspect = True

    def requeue(self, entry: RingEntry) -> None:
        """Puts an unacked message back, if it may come back."""
        self.unacked_count -= 1
        if self.deleted:
            self.forget(entry)
            return
        entry.redelivered = True
        entry.delivery_count += 1
        if 0 <= self.settings.delivery_limit < entry.delivery_count:
            self.die(entry, DELIVERY_LIMIT)
            return
        self.ready.give_back(entry)
        self._arrived(entry, log=True)
        self.activate()

    def _arrived(self, entry: RingEntry, log: bool) -> None:
        if self.last_values is not None:
            self._supersede(self.last_values.key_of(entry.message), entry.sequence, log)

    def _supersede(self, key: bytes | None, sequence: int, log: bool) -> None:
        """In a last-value queue: a message arrived, and the message that it makes out of date leaves."""
        assert self.last_values is not None
        outdated = self.last_values.arrive(key, sequence)
        if outdated is None:
            return
        old = self.ready.remove(outdated)
        if old is not None:
            self.dropped += 1
            (self.gone_unseen if log else self.forget)(old)
            return
        for page in self.pages():
            position = page.find(outdated)
            if position is not None:
                self.dropped += 1
                (self.gone_from_page if log else self.forget_paged)(page, position)
                if self.remove_paged(page, position):
                    self.pages_went()

    # --- out

    def run(self, now_ms: int) -> None:
        """The part of a deliver for one queue."""
        if self.stream is not None:
            self.stream.run(now_ms)
            return
        self._hand_out(now_ms)
        if self.may_drop:
            self.drop_surplus()
        if self.ready.with_deadline:
            self.expire(now_ms)
        self.weigh()

    def _hand_out(self, now_ms: int) -> None:
        # A message whose deadline is this very moment may still be delivered: that is the meaning of a TTL of 0.
        ready = self.ready
        while ready.count:
            if ready.head_missing:
                if ready.head_deadline_ms < now_ms or self.rotation.is_waiting:
                    ready.want_head()
                return
            if ready.with_deadline and ready.first().deadline_ms < now_ms:
                self.die_unseen(ready.pop_first(), EXPIRED)
                continue
            if self.waits_for_log:
                return
            consumer = self.rotation.next()
            if consumer is None:
                return
            consumer.deliver(ready.pop_first(), now_ms)

    def take(self, channel: "Channel", no_ack: bool, now_ms: int) -> tuple[int, bool, Message, int] | None:
        self.expire(now_ms)
        if not self.ready.count:
            return None
        if self.ready.head_missing:
            self.ready.want_head()
            return None
        if self.waits_for_log:
            return None
        entry = self.ready.pop_first()
        if self.mirror and not no_ack:
            channel.mirrors.came(entry.sequence)
            entry.term = channel.mirrors.era
        if self.trace is not None:
            self.trace.delivered(self, entry, None)
        message = self.delivered_form(entry)
        tag = channel.next_tag()
        redelivered = entry.redelivered
        if no_ack:
            self.gone(entry)
        else:
            channel.keep_unacked(tag, self, entry, None, now_ms)
        self.watch_time()
        return tag, redelivered, message, self.ready.count

    def delivered_form(self, entry: RingEntry) -> Message:
        """The message in the form for its receiver; counts the delivery."""
        engine = self.engine
        engine.delivered += 1
        self.delivered += 1
        if entry.redelivered:
            engine.redelivered += 1
            self.redelivered += 1
        if self.settings.counts_deliveries and entry.delivery_count:
            copy: Message = engine.hooks.redelivered_copy(entry.message, entry.delivery_count)
            return copy
        return entry.message

    def acknowledge(self, entry: RingEntry) -> None:
        self.unacked_count -= 1
        self.acked += 1
        self.gone(entry)

    def reject(self, entry: RingEntry) -> None:
        self.unacked_count -= 1
        self.die(entry, REJECTED)

    def delete(self) -> int:
        self.deleted = True
        count = self.clear(log=False)
        for consumer in self.consumers():
            consumer.cancel()
        if self.stream is not None:
            self.stream.delete()
        return count

    def snapshot(self) -> list[tuple[int, int, int, int, bool, Message]]:
        return [
            (entry.sequence, entry.term, entry.deadline_ms, entry.delivery_count, entry.redelivered, entry.message)
            for entry in self.ready
        ]

    def check(self) -> None:
        if self.stream is not None:
            self.stream.check()
        self.check_consumers()
        self.check_pages()
        self.ready.check()
        assert self.unacked_count >= 0
        assert all(entry.sequence < self.next_sequence for entry in self.ready.entries())
        assert not self.deleted or not self.ready.count
        assert self.gone_count == 0 or self in self.engine.log.dequeuing
        assert not self.is_unsealed or self in self.engine.unsealed_queues
