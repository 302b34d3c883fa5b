"""Settlements that name messages by their places (queue, sequence and term), from brokers whose clients have settled
deliveries of an earlier root, or whose settlement was under way to a root that failed (R29).

A place means the same at every root, so settling it twice is settling it once. A message that was settled already is
not there; one that has been delivered again meanwhile is settled, and its new receiver may still settle it, without
effect. A message that a root delivered before it was safe may be lost with the root, and published again in another
place; and a message that is leased now goes back if it is not released. Such an ack cannot be proven: a channel with
confirms is closed.
"""

import struct
from bisect import bisect_right
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from pandomq.errors import frame_error, not_implemented, precondition_failed
from pandomq.kernel.constants import ABSENT, ACK, CONFIRM, PLACE_UNKNOWN
from pandomq.methods import BasicSettle, BasicSettleOk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.leases.lease import LeaseRun
    from pandomq.broker.queues.queue import Queue
    from pandomq.kernel import Channel as KernelChannel
    from pandomq.kernel import Queue as KernelQueue

    Holders = dict[tuple[int, int], tuple[KernelChannel, int]]

PLACE: Final = struct.Struct(">QQQ")
"""Queue id, sequence and term, at the end of a basic.get-ok to another broker."""
_ROW: Final = struct.Struct(">QQQB")
_FIRST: Final = attrgetter("sequence")
IN_DOUBT: Final = (
    "the root changed, and an acknowledged message was not yet stored on a quorum; the message may be delivered again"
)
LEASED: Final = "the root changed, and an acknowledged message is leased now; the message may be delivered again"


def settle(broker: "Broker", channel: "Channel", method: BasicSettle) -> None:
    if channel.client.origin is None:
        raise not_implemented(f"unknown method {method.class_id}.{method.method_id}")
    if len(method.rows) % _ROW.size:
        raise frame_error("the rows of settlements end too early")
    settling = Settling(broker, channel)
    for queue_id, sequence, term, method_id in _ROW.iter_unpack(method.rows):
        known = broker.state.logged.get(queue_id)
        if known is not None:
            settling.settle(known[1].kernel, sequence, term, method_id)
    if method.number:
        broker.held.call_when_committed(lambda: _prove(channel, method.number))


def place_of(channel: "Channel", queue: "Queue", tag: int) -> bytes:
    """The place of the message taken from the queue under this tag; zeros for sequence and term if it needs no
    settlement."""
    return PLACE.pack(queue.kernel.queue_id, *channel.kernel.place_of(tag))


def _prove(channel: "Channel", number: int) -> None:
    client = channel.client
    if not channel.closing and not client.gone:
        # It does not wait behind held replies, since it is independent of them.
        client.session.write(client.broker.encode(channel.number, BasicSettleOk(number)))


class Settling:
    """The rows of one method: unacked and leased messages are looked up once for all of them."""

    __slots__ = ("_broker", "_channel", "_leased", "_unacked")

    def __init__(self, broker: "Broker", channel: "Channel") -> None:
        self._broker = broker
        self._channel: KernelChannel = channel.kernel
        self._unacked: dict[KernelQueue, Holders] = {}
        """By sequence and term: the channel that has the message, and its tag."""
        self._leased: dict[KernelQueue, list[LeaseRun]] = {}
        """The leased runs of each queue, in its order."""

    def settle(self, queue: "KernelQueue", sequence: int, term: int, method_id: int) -> None:
        """Raises ChannelFault (406) if it cannot be done."""
        result = self._channel.settle_place(queue, sequence, term, method_id)
        if method_id == ACK and self._channel.mode == CONFIRM:
            # A later confirm would prove something false. Without confirms the message comes back, and nothing else
            # happens.
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
        """An earlier root had the message, and the log never did, although it should have had it."""
        if not queue.logged or queue.local or term == self._broker.engine.term:
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
        found = _held_by({consumer.channel: None for consumer in queue.consumers()}, queue)
        if len(found) < queue.unacked_count:
            # A channel has got some by basic.get, or no longer consumes.
            clients = self._broker.clients
            found = _held_by((channel.kernel for client in clients for channel in client.channels.values()), queue)
        return found


def _held_by(channels: "Iterable[KernelChannel]", queue: "KernelQueue") -> "Holders":
    """The unacked messages of the queue that these channels have. The counts of their consumers are larger: a delivery
    that was settled elsewhere counts until its client has settled it, too."""
    return {
        (row[1], row[2]): (channel, tag)
        for channel in channels
        if channel.unacked_count
        for tag, row in zip(channel.outstanding(0, True), channel.unacked(), strict=True)
        if row[0] is queue
    }
