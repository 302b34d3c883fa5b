"""One subscription of a channel to a queue."""

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pandomq.kernel.constants import BASIC, DELIVER
from pandomq.kernel.plain.arrivals import PLACE
from pandomq.kernel.plain.chunk import Chunk
from pandomq.kernel.plain.fan_out import label_of
from pandomq.kernel.plain.reader import Reader

if TYPE_CHECKING:
    from pandomq.kernel.plain.chain import Chain
    from pandomq.kernel.plain.channel import Channel
    from pandomq.kernel.plain.queue import Queue
    from pandomq.kernel.plain.ring import RingEntry
    from pandomq.kernel.plain.rotation import Turn


def deliver_start(tag: bytes) -> bytes:
    return struct.pack(">HHB", BASIC, DELIVER, len(tag)) + tag


class Consumer:
    """Registers itself with queue and channel. `chain`, `before` and `after` belong to the chain it is in."""

    __slots__ = (
        "active",
        "after",
        "before",
        "chain",
        "channel",
        "deliver_start",
        "delivered",
        "identified",
        "labelled",
        "no_ack",
        "owner",
        "prefetch_max",
        "priority",
        "queue",
        "reader",
        "registered",
        "served",
        "tag",
        "turn",
        "unacked_count",
    )

    def __init__(
        self, channel: "Channel", queue: "Queue", tag: bytes, no_ack: bool, prefetch_max: int, priority: int, owner: Any
    ) -> None:
        self.owner = owner
        self.channel = channel
        self.queue = queue
        self.tag = tag
        self.no_ack = no_ack
        self.prefetch_max = prefetch_max
        self.priority = priority
        self.unacked_count = 0
        self.active = False
        self.delivered = 0
        self.labelled = False
        self.identified = False
        self.registered = True
        self.served = False  # it got a message since it was last woken
        self.deliver_start = deliver_start(tag)
        self.chain: Chain | None = None
        self.before: Consumer | None = None
        self.after: Consumer | None = None
        self.turn: Turn
        self.reader = Reader(self, queue.stream) if queue.stream is not None else None
        channel.subscriptions[self] = None
        if queue.mirror:
            channel.mirrors.consumers[tag] = self
        queue.add_consumer(self)

    def has_obstacle(self) -> bool:
        """Whether it may not take a message now."""
        channel, session = self.channel, self.channel.session
        return (
            channel.is_held
            or not channel.open
            or not session.writable
            or session.pending_bytes > session.out_bytes_max
            or 0 < self.prefetch_max <= self.unacked_count
            or 0 < channel.prefetch_max <= channel.credit_used
        )

    def rest(self) -> None:
        """Moves to the chain that the end of its obstacle wakes."""
        channel = self.channel
        if channel.is_shut:
            channel.resting.append(self)
        elif channel.session.is_full:
            # Consumers that got nothing come first next time: otherwise the same one could fill the session again and
            # again.
            (channel.session.served if self.served else channel.session.starved).append(self)
        elif 0 < self.prefetch_max <= self.unacked_count:
            return
        else:
            channel.resting.append(self)

    def wake(self) -> None:
        """Waits for its turn again, unless it already waits or must not."""
        if self.chain is self.turn or not self.registered or not self.active:
            return
        if self.chain is not None:
            self.chain.remove(self)
        self.served = False
        self.turn.append(self)
        if self.reader is not None:
            self.queue.activate()
        else:
            self.queue.activate_if_ready()

    def deliver(self, entry: "RingEntry", now_ms: int) -> None:
        """Writes the delivery; the entry has just left the ready messages."""
        queue, channel = self.queue, self.channel
        self.served = True
        self.delivered += 1
        if queue.trace is not None:
            queue.trace.delivered(queue, entry, self)
        message = queue.delivered_form(entry)
        tag = channel.next_tag()
        start, said_tag = self.deliver_start, tag
        if self.labelled:
            start, said_tag = deliver_start(label_of(entry.message.producer)), entry.message.number
        place = PLACE.pack(entry.sequence, entry.term) if self.identified else b""
        channel.session.write_delivery(channel.number, start, said_tag, entry.redelivered, message, place)
        if self.no_ack:
            queue.gone(entry)
        else:
            self.unacked_count += 1
            channel.credit_used += 1
            channel.keep_unacked(tag, queue, entry, self, now_ms)

    def settled(self) -> None:
        """One of its messages is no longer unacked."""
        self.unacked_count -= 1
        self.channel.give_credit()
        self.wake_if_idle()

    def wake_if_idle(self) -> None:
        """To be called when the consumer may have credit again."""
        if self.chain is None and (self.prefetch_max == 0 or self.unacked_count < self.prefetch_max):
            self.wake()

    def cancel(self) -> None:
        if not self.registered:
            return
        self.registered = False
        if self.chain is not None:
            self.chain.remove(self)
        if self.reader is not None:
            self.reader.leave()
        del self.channel.subscriptions[self]
        if self.channel.mirrors.consumers.get(self.tag) is self:
            del self.channel.mirrors.consumers[self.tag]
        self.queue.remove_consumer(self)

    @property
    def next_offset(self) -> int:
        return -1 if self.reader is None else self.reader.next_offset

    def seek(self, offset: int, filters: Sequence[bytes] = (), match_unfiltered: bool = False) -> None:
        self._of_stream().seek(offset, filters, match_unfiltered)

    def read_from(self, chunk: Chunk) -> None:
        self._of_stream().read_from(chunk)

    def _of_stream(self) -> Reader:
        if self.reader is None:
            raise ValueError("not a consumer of a stream")
        return self.reader

    def check(self) -> None:
        assert self.unacked_count >= 0
        assert self.registered or self.chain is None
