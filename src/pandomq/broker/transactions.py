"""A channel's transaction: publishes and settlements that wait for tx.commit.

Publishes are checked and routed when they come, as RabbitMQ does. With the commit they get their places in the queues
and their part of the log's entry, which is one for the whole transaction; consumers see them when that entry is
committed, all together. Settlements are counted as done for the channel at once and reach their queues with the commit.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.delayed import DelayedMessages
from pandomq.broker.publishing import enqueue
from pandomq.errors import precondition_failed

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.broker.channel import Channel
    from pandomq.broker.client import Client


class Admission:
    """Messages of a transaction that have their places, and enter their queues when the log has the transaction."""

    __slots__ = ("_client", "messages")

    def __init__(self, client: "Client") -> None:
        self._client = client
        self.messages: list[tuple[kernel.Message, list[tuple[kernel.Queue, int, int]]]] = []

    def give(self, broker: "Broker") -> None:
        del broker.admissions[self]
        self._client.uncommitted_count -= 1
        for message, places in self.messages:
            broker.engine.admit(message, places, broker.now_ms)


class Transaction:
    __slots__ = ("_bytes", "_bytes_max", "_publishes", "_settled", "_settlements")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._clear()

    def _clear(self) -> None:
        self._bytes = 0
        self._publishes: list[tuple[kernel.Message, Sequence[kernel.Queue], int]] = []
        self._settlements: list[tuple[int, Sequence[int], bool]] = []
        self._settled: set[int] = set()

    @property
    def publish_count(self) -> int:
        return len(self._publishes)

    @property
    def settled_count(self) -> int:
        return len(self._settled)

    def is_settled(self, tag: int) -> bool:
        return tag in self._settled

    def publish(self, message: kernel.Message, queues: Sequence[kernel.Queue], flags: int) -> None:
        self._bytes += len(message.header) + message.body_size
        if self._bytes > self._bytes_max:
            raise precondition_failed(
                f"transaction size {self._bytes} is larger than configured max size {self._bytes_max}"
            )
        self._publishes.append((message, queues, flags))

    def settle(self, channel: kernel.Channel, method_id: int, tag: int, multiple: bool, requeue: bool) -> None:
        """Raises ChannelFault (406) for a tag that is not outstanding, or was settled in this transaction."""
        tags = [known for known in channel.outstanding(tag, multiple) if known not in self._settled]
        # Tag 0 with multiple is everything so far, and that may be nothing.
        if not tags and not (multiple and tag == 0):
            raise precondition_failed(f"unknown delivery tag {tag}")
        self._settlements.append((method_id, tags, requeue))
        self._settled.update(tags)

    def commit(self, broker: "Broker", channel: "Channel") -> bool:
        """False if a queue refused a publish; the rest is done all the same, as in RabbitMQ."""
        publishes, settlements = self._publishes, self._settlements
        self._clear()
        accepted = True
        admission = Admission(channel.client)
        for message, queues, flags in publishes:
            living = [queue for queue in queues if not queue.deleted]
            if any(isinstance(queue.owner, DelayedMessages) for queue in living):
                stored = enqueue(broker, channel.kernel, channel.client.vhost, message, living, flags)
            else:
                stored, places = broker.engine.prepare(channel.kernel, message, living, flags, broker.now_ms)
                admission.messages.append((message, places))
            accepted = stored and accepted
        if admission.messages:
            broker.admissions[admission] = None
            channel.client.uncommitted_count += 1
            broker.held.call_when_committed(lambda: admission.give(broker))
        for method_id, tags, requeue in settlements:
            for tag in tags:
                broker.engine.settle_one(channel.kernel, method_id, tag, False, requeue, broker.now_ms)
        return accepted

    def rollback(self) -> None:
        self._clear()
