"""Deliveries of earlier roots to a channel's consumers that the client has not settled: they count for the prefetch.

The front sends the current root the number of such deliveries of each consumer, before the consumer begins, and again
when the client has settled some; so the root delivers no more than the rest of the prefetch. The front could not do
this itself: a message that it holds back may be acked by another consumer that has it, and must not be delivered after
that (P3).
"""

from typing import TYPE_CHECKING, Final

from pandomq.methods import BasicHeld

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.cluster.proxy.front_channel import FrontChannel

VERSION: Final = 2
"""The version of the link protocol that has this; brokers of earlier versions do not understand it."""
CANCELLED: Final = ""
"""Replaces the tag of a consumer that no longer exists: its deliveries count for the channel alone."""


class EarlierDeliveries:
    __slots__ = ("_channel", "_queues", "_told")

    def __init__(self, channel: "FrontChannel") -> None:
        self._channel = channel
        self._queues: dict[str, list[kernel.Queue]] = {}
        """The queues from which the deliveries to a consumer came, by the consumer's tag. No list is empty."""
        self._told: dict[str, int] = {}
        """The numbers that the current root has been sent."""

    def lost(self, tag: str, queue: "kernel.Queue") -> None:
        """From now on, deliveries of this queue count."""
        if queue.unacked_count:
            self._queues.setdefault(tag, []).append(queue)
            self._channel.client.broker.indebted[self._channel] = None

    def cancelled(self, tag: str) -> None:
        queues = self._queues.pop(tag, None)
        if queues is not None:
            self._queues.setdefault(CANCELLED, []).extend(queues)

    def resume(self) -> None:
        """To be called when there is another root, or another connection to the same one."""
        self._told = {}
        self.tell()

    def tell(self) -> None:
        """Sends the root the changed numbers: the client may have settled some deliveries."""
        lane = self._channel.lane
        counts = {tag: sum(queue.unacked_count for queue in queues) for tag, queues in self._queues.items()}
        if lane is not None and lane.tunnel.version >= VERSION:
            for tag in counts | self._told:
                count = counts.get(tag, 0)
                if count != self._told.get(tag, 0):
                    lane.tell(BasicHeld(tag, count))
            self._told = {tag: count for tag, count in counts.items() if count}
        self._queues = {
            tag: [queue for queue in queues if queue.unacked_count]
            for tag, queues in self._queues.items()
            if counts[tag]
        }
        if not self._queues:
            self.end()

    def end(self) -> None:
        """To be called when there is nothing more to send to the root, or when the channel is closed."""
        self._channel.client.broker.indebted.pop(self._channel, None)
