"""Settlements that name messages by their places (queue, sequence and term), from brokers whose clients have settled
what an earlier root delivered, or settled it on the way to a root that is gone (R29).

A place means the same at every root, so settling it twice is settling it once. What was settled already is not there;
what has been delivered again meanwhile is settled, and whoever has it may still settle it, without effect. What a root
had delivered before it was safe may be lost with it, and published again in another place; and what somebody leases now
goes back if it is not released. Such an ack cannot be proven: a channel with confirms is closed.
"""

import struct
from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from pandomq.errors import frame_error, not_implemented, precondition_failed
from pandomq.kernel.constants import ABSENT, ACK, CONFIRM, PLACE_UNKNOWN
from pandomq.methods import BasicSettle, BasicSettleOk

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.leases.lease import Run
    from pandomq.broker.queue import Queue
    from pandomq.kernel import Channel as KernelChannel
    from pandomq.kernel import Queue as KernelQueue

    Holders = dict[tuple[int, int], tuple[KernelChannel, int]]

PLACE: Final = struct.Struct(">QQQ")
"""Queue id, sequence and term, as a basic.get-ok to another broker ends with them."""
_ROW: Final = struct.Struct(">QQQB")
_FIRST: Final = attrgetter("sequence")
IN_DOUBT: Final = "the root changed, and something was acked that the last one had not made safe; it may come again"
LEASED: Final = "the root changed, and something was acked that is leased by now; it may come again"


def settle(broker: "Broker", channel: "Channel", method: BasicSettle) -> None:
    if channel.client.origin is None:
        raise not_implemented(f"unknown method {method.class_id}.{method.method_id}")
    if len(method.rows) % _ROW.size:
        raise frame_error("rows of settlements end too early")
    settling = Settling(broker, channel)
    for queue_id, sequence, term, method_id in _ROW.iter_unpack(method.rows):
        known = broker.state.logged.get(queue_id)
        if known is not None:
            settling.settle(known[1].kernel, sequence, term, method_id)
    if method.number:
        broker.held.call_when_committed(lambda: _prove(channel, method.number))


def place_of(channel: "Channel", queue: "Queue", tag: int) -> bytes:
    """Of what was taken from the queue under this tag; zeros for sequence and term if nobody will settle it."""
    return PLACE.pack(queue.kernel.queue_id, *channel.kernel.place_of(tag))


def _prove(channel: "Channel", number: int) -> None:
    client = channel.client
    if not channel.closing and not client.gone:
        # It stays behind no reply that waits: it has nothing to do with any.
        client.session.write(client.broker.encode(channel.number, BasicSettleOk(number)))


class Settling:
    """The rows of one method: who has what, and what is leased, is looked up once for all of them."""

    __slots__ = ("_broker", "_channel", "_leased", "_unacked")

    def __init__(self, broker: "Broker", channel: "Channel") -> None:
        self._broker = broker
        self._channel: KernelChannel = channel.kernel
        self._unacked: dict[KernelQueue, Holders] = {}
        """By sequence and term: who has it, and under which tag."""
        self._leased: dict[KernelQueue, list[Run]] = {}
        """In the order of the queue."""

    def settle(self, queue: "KernelQueue", sequence: int, term: int, method_id: int) -> None:
        """Raises ChannelFault (406) if it cannot be done."""
        result = self._channel.settle_place(queue, sequence, term, method_id)
        if method_id == ACK and self._channel.mode == CONFIRM:
            # A later confirm would prove what is not so. Elsewhere it comes back, and that is all.
            if result == PLACE_UNKNOWN or (result == ABSENT and self._was_lost(queue, sequence, term)):
                raise precondition_failed(IN_DOUBT)
            if result == ABSENT and self._is_leased(queue, sequence, term):
                raise precondition_failed(LEASED)
        if result == ABSENT and queue.unacked_count:
            if queue not in self._unacked:
                self._unacked[queue] = self._find_unacked(queue)
            found = self._unacked[queue].pop((sequence, term), None)
            if found is not None:
                self._channel.settle_elsewhere(*found, method_id)

    def _was_lost(self, queue: "KernelQueue", sequence: int, term: int) -> bool:
        """An earlier root had it, and the log never did."""
        if not queue.logged or term == self._broker.engine.term:
            return False
        return self._broker.state.term_starts.was_lost(queue.queue_id, sequence, term)

    def _is_leased(self, queue: "KernelQueue", sequence: int, term: int) -> bool:
        if queue not in self._leased:
            state = self._broker.state
            vhost, owner = state.logged[queue.queue_id]
            leases = state.leases.of_queue(vhost.name, owner.name)
            self._leased[queue] = sorted(run for lease in leases for run in lease.runs)
        runs = self._leased[queue]
        position = bisect_right(runs, sequence, key=_FIRST) - 1
        return position >= 0 and runs[position].has(sequence, term)

    def _find_unacked(self, queue: "KernelQueue") -> "Holders":
        consumers = queue.consumers()
        channels = {consumer.channel: None for consumer in consumers if consumer.unacked_count}
        if sum(consumer.unacked_count for consumer in consumers) < queue.unacked_count:
            # Somebody has got it by basic.get, or consumes no more.
            clients = self._broker.clients
            channels = {channel.kernel: None for client in clients for channel in client.channels.values()}
        return {
            (row[1], row[2]): (channel, tag)
            for channel in channels
            for tag, row in zip(channel.outstanding(0, True), channel.unacked(), strict=True)
            if row[0] is queue
        }
