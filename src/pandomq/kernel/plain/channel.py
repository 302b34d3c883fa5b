"""A channel: publish numbers, consumers, and the window of unacked deliveries."""

from collections import deque
from typing import TYPE_CHECKING, Any

from pandomq.kernel.constants import ABSENT, ACK, CONFIRM, NACK, NORMAL, SETTLED
from pandomq.kernel.plain import relay
from pandomq.kernel.plain.chain import Chain
from pandomq.kernel.plain.confirms import Confirms
from pandomq.kernel.plain.kept import Kept
from pandomq.kernel.plain.mirrors import Mirrors
from pandomq.kernel.plain.window import Unacked, Window

if TYPE_CHECKING:
    from pandomq.kernel.plain.consumer import Consumer
    from pandomq.kernel.plain.message import Message
    from pandomq.kernel.plain.queue import Queue
    from pandomq.kernel.plain.ring import RingEntry
    from pandomq.kernel.plain.session import Session
    from pandomq.kernel.plain.trace import TracedPublish


class Channel:
    """See the contract."""

    def __init__(self, session: "Session", number: int, owner: Any) -> None:
        self.owner = owner
        self.session = session
        self.number = number
        self.open = True
        self.mode = NORMAL
        self.prefetch_max = 0
        self.credit_used = 0  # unacked deliveries to consumers; what basic.get took does not count
        self.is_held = False
        self.is_waking = False  # in the engine's list of channels to wake
        self.is_touched = False  # in the engine's list of channels with something to seal
        self.producer = 0
        self.repeats_through = 0
        self.numbered_in = 0  # the last batch in which it was in Engine.numbered
        self.subscriptions: dict[Consumer, None] = {}
        self.resting = Chain()
        self.window = Window()
        self.confirms = Confirms(self)
        self.kept = Kept(session.engine)
        self.mirrors = Mirrors(self)
        self.traced: deque[TracedPublish] = deque()
        session.channels[number] = self

    @property
    def unacked_count(self) -> int:
        return len(self.window)

    @property
    def published_count(self) -> int:
        return self.confirms.published + self.kept.published

    @property
    def unconfirmed_count(self) -> int:
        unsettled = self.confirms.published - self.confirms.settled - self.confirms.early.ahead_count
        return unsettled + self.kept.unconfirmed_count

    def consumers(self) -> list["Consumer"]:
        return list(self.subscriptions)

    # --- publishes

    def count_publish(self, message: "Message") -> bool:
        """True if it is one of the publishes that were sent before."""
        if self.mode != CONFIRM:
            return False
        self.confirms.published += 1
        self.touch()
        if not self.producer:
            return False
        message.producer, message.number = self.producer, self.confirms.published
        return message.number <= self.repeats_through

    def set_published(self, count: int) -> None:
        self.confirms.begin_after(count)

    def publish_logged(self) -> None:
        """The last counted publish is in the batch's log entry."""
        engine = self.session.engine
        if self.producer and self.numbered_in != engine.batch:
            self.numbered_in = engine.batch
            engine.numbered.append(self)
        self.publish_waits()

    def publish_waits(self) -> None:
        """The last counted publish is confirmed after the batch's entry."""
        self.confirms.depend_on_batch(max(self.confirms.published, 1))
        self.touch()

    def publish_awaited(self) -> None:
        """The last counted publish is for an outlet."""
        if self.mode == CONFIRM:
            self.confirms.await_receipt()
            self.touch()

    def bar(self) -> None:
        """An ack, or a reply that waits: later publishes are confirmed after this batch is committed."""
        self.confirms.depend_on_batch(self.confirms.published + 1)
        if self.session.engine.replicated:
            self.confirms.early.bar(self.confirms.published)
        self.touch()

    @property
    def kept_count(self) -> int:
        return len(self.kept)

    @property
    def kept_bytes(self) -> int:
        return self.kept.bytes

    @property
    def first_kept(self) -> int:
        return self.kept.first

    @property
    def unproven_count(self) -> int:
        return len(self.mirrors.unproven)

    @property
    def settled_number(self) -> int:
        return self.mirrors.unproven.last

    def prove(self, number: int) -> None:
        self.mirrors.unproven.prove(number)

    def settle_again(self) -> None:
        self.mirrors.settle_again()

    def come_back(self, message: "Message") -> None:
        self.kept.come_back(message)

    def resend(self) -> None:
        self.kept.returned = 0
        for message, flags in self.kept.messages():
            relay.write(self, message, flags)

    def touch(self) -> None:
        if not self.is_touched:
            self.is_touched = True
            self.session.engine.touched_channels.append(self)

    # --- deliveries

    @property
    def is_shut(self) -> bool:
        """Nothing is delivered on the channel."""
        return self.is_held or not self.open

    def next_tag(self) -> int:
        window = self.window
        window.last_tag += 1
        return window.last_tag

    def keep_unacked(
        self, tag: int, queue: "Queue", entry: "RingEntry", consumer: "Consumer | None", now_ms: int
    ) -> None:
        queue.unacked_count += 1
        self.window.add(tag, Unacked(queue, entry, consumer, now_ms))

    @property
    def oldest_delivery_ms(self) -> int:
        return self.window.oldest_delivery_ms

    def outstanding(self, tag: int, multiple: bool) -> list[int]:
        return self.window.outstanding(tag, multiple) or []

    def unacked(self) -> list[tuple["Queue", int, int, int, int, bool, "Message"]]:
        return [
            (
                queue,
                entry.sequence,
                entry.term,
                entry.deadline_ms,
                entry.delivery_count,
                entry.redelivered,
                entry.message,
            )
            for queue, entry, _, _ in self.window.deliveries()
        ]

    def place_of(self, tag: int) -> tuple[int, int]:
        return self.window.place_of(tag)

    def settle(self, method_id: int, tag: int, multiple: bool, requeue: bool) -> bool:
        """False, and nothing happened, if the tag is unknown."""
        tags = self.window.outstanding(tag, multiple)
        if tags is None:
            return False
        for one in tags:
            unacked = self._release(one)
            queue, entry = unacked.queue, unacked.entry
            self._trace_settled(unacked, method_id, requeue)
            if queue.mirror:
                self._settle_mirrored(queue, entry, method_id, requeue)
            elif queue.stream is not None:
                self._settle_read(queue, method_id)
            elif method_id == ACK:
                self.session.engine.acked += 1
                queue.acknowledge(entry)
            elif requeue:
                queue.requeue(entry)
            else:
                queue.reject(entry)
            if not requeue and queue.logged and entry.message.kept:
                self.bar()
        return True

    def settle_place(self, queue: "Queue", sequence: int, term: int, method_id: int) -> int:
        if queue.stream is not None or queue.deleted:
            return ABSENT
        result = queue.settle_ready(sequence, term, method_id)
        if result == SETTLED and queue.logged:
            self.bar()
        return result

    def settle_elsewhere(self, other: "Channel", tag: int, method_id: int) -> bool:
        if not other.window.outstanding(tag, False):
            return False
        engine = self.session.engine
        queue, entry, _, _ = other.window.void(tag, engine.nowhere)
        engine.nowhere.unacked_count += 1
        engine.hold(entry.message)
        if method_id == ACK:
            engine.acked += 1
            queue.acknowledge(entry)
        else:
            queue.reject(entry)
        if queue.logged:
            self.bar()
        return True

    def _release(self, tag: int) -> Unacked:
        unacked = self.window.pop(tag)
        if unacked.consumer is not None:
            unacked.consumer.settled()
        return unacked

    def _trace_settled(self, unacked: Unacked, method_id: int, requeue: bool) -> None:
        """A rejection that kills a message is traced as a death; a stream keeps its messages."""
        queue = unacked.queue
        if queue.trace is None or queue.deleted:
            return
        if method_id == ACK:
            queue.trace.acked(unacked)
        elif requeue and queue.stream is None:
            queue.trace.requeued(unacked)

    def recover(self, now_ms: int) -> None:
        for tag in self.window.outstanding(0, True) or ():
            unacked = self._release(tag)
            self._trace_settled(unacked, NACK, requeue=True)
            if unacked.queue.mirror:
                self._settle_mirrored(unacked.queue, unacked.entry, NACK, requeue=True)
            elif unacked.queue.stream is not None:
                self._settle_read(unacked.queue, NACK)
            else:
                unacked.queue.requeue(unacked.entry)

    def _settle_read(self, queue: "Queue", method_id: int) -> None:
        """The credit has been returned already, and nothing else is to do: a stream keeps its messages."""
        queue.unacked_count -= 1
        if method_id == ACK:
            self.session.engine.acked += 1
            queue.acked += 1

    def _settle_mirrored(self, queue: "Queue", entry: "RingEntry", method_id: int, requeue: bool) -> None:
        self.mirrors.settled(queue, entry, method_id, requeue)
        queue.unacked_count -= 1
        if method_id == ACK:
            self.session.engine.acked += 1
            queue.acked += 1
        elif not requeue:
            queue.dropped += 1
        queue.forget(entry)

    def give_back(self, queue: "Queue") -> int:
        count = queue.ready_count
        while queue.ready_count:
            entry = queue.ready.pop_first()
            self.mirrors.settled(queue, entry, NACK, requeue=True)
            queue.forget(entry)
        queue.weigh()
        return count

    def forget(self, queue: "Queue") -> None:
        for tag in self.window.outstanding(0, True) or ():
            if self.window.queue_of(tag) is queue:
                self.forget_tag(tag)

    def forget_tag(self, tag: int) -> bool:
        if not self.window.outstanding(tag, False):
            return False
        unacked = self._release(tag)
        unacked.queue.unacked_count -= 1
        if unacked.queue.stream is None:
            unacked.queue.forget(unacked.entry)
        return True

    # --- credit

    def set_prefetch(self, prefetch_max: int) -> None:
        self.prefetch_max = prefetch_max
        self.wake_later()

    def give_credit(self) -> None:
        self.credit_used -= 1
        self.wake_later()

    def owe(self, consumer: "Consumer | None", count: int) -> None:
        self.credit_used += count
        if consumer is not None:
            consumer.unacked_count += count
            if count < 0:
                consumer.wake_if_idle()
        if count < 0:
            self.wake_later()

    def hold(self) -> None:
        self.is_held = True
        self.bar()

    def release(self) -> None:
        self.is_held = False
        self.wake_later()

    def hold_confirms(self, number: int) -> None:
        self.confirms.hold(number)

    def wake_later(self) -> None:
        if self.resting.first is not None and not self.is_waking:
            self.is_waking = True
            self.session.engine.waking_channels.append(self)

    def wake(self) -> bool:
        """Wakes as many consumers as there is credit for. True if more should wake in case these do not use it up."""
        if self.is_shut:
            return False
        unlimited = self.prefetch_max == 0
        free = self.prefetch_max - self.credit_used
        woken = False
        while (unlimited or free > 0) and (consumer := self.resting.first) is not None:
            consumer.wake()
            woken = True
            if consumer.queue.ready.count:
                free -= 1
        return woken and self.resting.first is not None

    # --- end

    def close(self, now_ms: int) -> None:
        self.open = False
        for consumer in self.consumers():
            consumer.cancel()
        self.recover(now_ms)
        self.kept.clear()
        self.traced.clear()
        self.mirrors.unproven.clear()
        if self.session.channels.get(self.number) is self:
            del self.session.channels[self.number]

    def check(self) -> None:
        assert self.credit_used >= sum(consumer.unacked_count for consumer in self.subscriptions)
        self.window.check()
        self.confirms.check()
        self.kept.check()
        self.mirrors.check()
        self.resting.check()
