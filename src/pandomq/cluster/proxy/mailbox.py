"""The queue of a front in which deliveries for one consumer of a shared queue wait until the client takes them.

For the client's channel it is a queue like any other, but it keeps nothing: the client's settlements happen at the
root. When the root changes, all messages from the old one will be delivered again, unless the client settles them
before: then the new root is sent which message it is.

Of a stream, only what the client has not received is delivered again: the root answers at which offset a consumer
begins, each delivery has its own, and the front asks the next root to continue after the last one. For streams acks are
credit, no more.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from pandomq import kernel
from pandomq.broker.queues.queue import Queue
from pandomq.broker.streams.consuming import OFFSET, time_of
from pandomq.fieldtable import Timestamp
from pandomq.methods import BasicConsumeOk

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.cluster.proxy.front_client import FrontClient
    from pandomq.methods import BasicConsume, Method

_SECOND_US: Final = 1_000_000


class Mailbox(Queue):
    __slots__ = ("age", "consume", "next_offset", "prefetch_count", "reads_stream")

    def __init__(self, channel: "FrontChannel", name: str, consume: "BasicConsume | None" = None) -> None:
        """Without `consume` the mailbox is for messages of basic.get."""
        client = channel.client
        super().__init__(client.vhost, name, owner=client, user=client.user, now_ms=client.broker.now_ms)
        self.kernel.configure(mirror=True)
        self.consume = consume
        """The consume as it was sent to the root."""
        self.prefetch_count = channel.prefetch_count
        self.age = client.next_age()
        shared = client.vhost.queues.get(name)
        self.reads_stream = shared is not None and shared.stream is not None
        self.next_offset: int | None = None
        """The offset at which a consumer of a stream continues; None if the consume named a time, and nothing has
        arrived yet."""

    def begun(self, answer: "Method") -> None:
        """The root delivers from now on; its answer names the queue, or the offset of a stream."""
        assert isinstance(answer, BasicConsumeOk)
        if not answer.consumer_tag.isdecimal():
            return
        if not self.reads_stream:
            self.kernel.queue_id = int(answer.consumer_tag)
        elif self.next_offset is None:
            self.next_offset = int(answer.consumer_tag)

    def came(self, message: kernel.Message) -> None:
        """Notes the last message that a stream has delivered here."""
        self.next_offset = offset_of(message) + 1

    def consume_again(self) -> "BasicConsume":
        """The consume for the next root."""
        assert self.consume is not None
        if self.next_offset is None:
            return self.consume
        return msgspec.structs.replace(self.consume, arguments={**self.consume.arguments, OFFSET: self.next_offset})

    def renew(self) -> None:
        """To be called when the root has changed, and the client's consumer at the earlier root with it. Messages that
        the client has not received are dropped; settlements of the others refer to their places."""
        if self.reads_stream and self.kernel.ready_count:
            self.next_offset = offset_of(self.kernel.snapshot()[0][5])
        self.kernel.delete()
        self.kernel = kernel.Queue(self.vhost.engine, self, 0, False)
        self.kernel.configure(mirror=True)

    def close(self) -> None:
        """Ends the mailbox: drops its messages like `renew`, and accepts no others."""
        is_settled = not self.kernel.unacked_count
        self.kernel.delete()
        if is_settled:
            self.kernel.owner = None


def offset_of(message: kernel.Message) -> int:
    """The offset of a message that a stream has delivered."""
    value = message.find_header(OFFSET.encode())
    assert value is not None, "each of them says it"
    return int.from_bytes(value[1:], "big")


def with_lasting_time(consume: "BasicConsume", now_ms: int) -> "BasicConsume":
    """An interval such as "an hour ago" counts from now, also if another root is asked later."""
    wish = consume.arguments.get(OFFSET)
    time_us = time_of(wish, now_ms) if isinstance(wish, str) else None
    if time_us is None:
        return consume
    return msgspec.structs.replace(consume, arguments={**consume.arguments, OFFSET: Timestamp(time_us // _SECOND_US)})


def note_offsets(client: "FrontClient", run: "kernel.DeliveryRun") -> None:
    """The last delivery of each consumer counts, so few are examined."""
    seen: set[tuple[int, bytes]] = set()
    count = sum(len(channel.consumers) for channel in client.channels.values())
    for position in range(len(run) - 1, -1, -1):
        number, tag, _, _, message = run[position]
        if (number, tag) in seen:
            continue
        seen.add((number, tag))
        channel = client.channels.get(number)
        consumer = None if channel is None else channel.consumers.get(tag.decode())
        box = None if consumer is None else consumer.queue.owner
        if isinstance(box, Mailbox) and box.reads_stream:
            box.came(message)
        if len(seen) == count:
            return
