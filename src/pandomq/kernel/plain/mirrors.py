"""Deliveries that another broker, the root, made to a channel of this broker, and their settlements to the root.

The messages are in mirror queues, under the root's delivery tags as sequences. When the client settles one, the broker
settles it at the root under that tag. Consecutive acks are joined: an ack of the lowest unsettled tag may become part
of one `multiple`, since that covers nothing else. Acks are written when something else has to be written, at the latest
at the end of the run.

Tags are valid on one uplink only. Messages of an earlier uplink are settled by the place that they have at the root, if
it is known: the message's `number` (sequence) and `producer` (term), and the mirror's queue id. All settlements of such
messages are kept until they are proven, see unproven.py; except in transactions, which are sent again, or not, as a
whole.
"""

import struct
from typing import TYPE_CHECKING, Final

from pandomq.kernel.constants import (
    ACK,
    BASIC,
    FRAME_END,
    METHOD,
    MIRROR_SPAN_MAX,
    NACK,
    REJECT,
    SETTLE_ROWS_MAX,
    TRANSACTION,
)
from pandomq.kernel.plain.unproven import Unproven

if TYPE_CHECKING:
    from pandomq.kernel.plain.channel import Channel
    from pandomq.kernel.plain.consumer import Consumer
    from pandomq.kernel.plain.engine import Engine
    from pandomq.kernel.plain.queue import Queue
    from pandomq.kernel.plain.ring import RingEntry
    from pandomq.kernel.plain.runs import DeliveryRun
    from pandomq.kernel.plain.session import Session

SETTLEMENT_FRAME: Final = struct.Struct(">BHIHHQBB")
REQUEUE_BIT: Final = {NACK: 2, REJECT: 1}


class Mirrors:
    """The root's deliveries to one channel."""

    __slots__ = (
        "_channel",
        "_joined_count",
        "_joined_tag",
        "_late_count",
        "_lost",
        "_low",
        "_outstanding",
        "_uplink",
        "consumers",
        "era",
        "unproven",
    )

    def __init__(self, channel: "Channel") -> None:
        self._channel = channel
        self.consumers: dict[bytes, Consumer] = {}  # of mirror queues, by tag
        self.era = 0  # counts the uplinks; entries have it as their term
        self._uplink: Session | None = None
        self._outstanding: set[int] = set()
        self._low = 0  # the lowest of those
        self._lost = False  # they are too far apart to be remembered: acks are no longer joined
        self._joined_tag = 0
        self._joined_count = 0
        self.unproven = Unproven()
        self._late_count = 0  # the last `_late_count` of them are written by place

    def turn_to_uplink(self) -> "Session | None":
        uplink = self._channel.session.uplink
        if uplink is not self._uplink:
            self._uplink = uplink
            self.era += 1
            self._outstanding.clear()
            self._lost = False
            self._joined_count = self._late_count = 0
        return uplink

    def came(self, tag: int) -> None:
        """A delivery that will have to be settled."""
        self.turn_to_uplink()
        if self._lost or tag in self._outstanding:
            return
        if not self._outstanding:
            self._low = tag
        elif not self._low < tag < self._low + MIRROR_SPAN_MAX:
            self._lost = True
            self._outstanding.clear()
            return
        self._outstanding.add(tag)

    def settled(self, queue: "Queue", entry: "RingEntry", method_id: int, requeue: bool) -> None:
        uplink = self.turn_to_uplink()
        if not self._channel.open:
            return
        late = queue.deleted or entry.term != self.era
        if not requeue and queue.queue_id and entry.message.number and self._channel.mode != TRANSACTION:
            self._keep(queue, entry, method_id, late=late)
        if late or uplink is None:
            return
        lowest = self._leave(entry.sequence)
        if method_id == ACK and lowest:
            self._joined_tag = entry.sequence
            self._joined_count += 1
        else:
            self.flush()
            self.write(method_id, entry.sequence, REQUEUE_BIT[method_id] if requeue else 0)

    def _keep(self, queue: "Queue", entry: "RingEntry", method_id: int, *, late: bool) -> None:
        if not late or self._late_count == SETTLE_ROWS_MAX:
            self._write_late()
        self.unproven.add(queue.queue_id, entry.message.number, entry.message.producer, method_id)
        if late and self._uplink is not None:
            self._late_count += 1

    def _write_late(self) -> None:
        if self._late_count:
            assert self._uplink is not None
            self.unproven.write(self._uplink, self._channel.number, self._late_count)
            self._late_count = 0

    def settle_again(self) -> None:
        uplink = self.turn_to_uplink()
        if uplink is not None:
            self.unproven.write(uplink, self._channel.number, len(self.unproven))

    def _leave(self, tag: int) -> bool:
        """True if it was the lowest unsettled tag."""
        if tag not in self._outstanding:
            return False
        self._outstanding.discard(tag)
        if tag != self._low:
            return False
        while self._outstanding and self._low not in self._outstanding:
            self._low += 1
        return True

    def flush(self) -> None:
        if self._joined_count:
            self.write(ACK, self._joined_tag, int(self._joined_count > 1))
            self._joined_count = 0
        self._write_late()

    def write(self, method_id: int, tag: int, bits: int) -> None:
        channel = self._channel
        if channel.session.uplink is not None:
            frame = SETTLEMENT_FRAME.pack(METHOD, channel.number, 13, BASIC, method_id, tag, bits, FRAME_END)
            channel.session.uplink.write(frame)

    def check(self) -> None:
        assert not self._joined_count and not self._late_count
        assert not self._outstanding or self._low == min(self._outstanding)
        assert all(consumer.queue.mirror and consumer.tag == tag for tag, consumer in self.consumers.items())


def mirror(engine: "Engine", session: "Session", run: "DeliveryRun", now_ms: int) -> None:
    for number, consumer_tag, tag, redelivered, message in run.items:
        channel = session.channels.get(number)
        if channel is None or not channel.open:
            continue
        consumer = channel.mirrors.consumers.get(consumer_tag)
        if consumer is None:
            channel.mirrors.write(NACK, tag, REQUEUE_BIT[NACK])
            continue
        channel.mirrors.turn_to_uplink()
        if not consumer.no_ack:
            channel.mirrors.came(tag)
        consumer.queue.mirror_message(message, tag, channel.mirrors.era, redelivered, now_ms)
