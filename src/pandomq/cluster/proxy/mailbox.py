"""Where deliveries of one consumer of a shared queue arrive from the root, to be passed on as the client takes them.

For the client's channel it is a queue like any other, but it keeps nothing: what the client settles is settled at the
root. When the root is another one, all that came from the old one will be delivered again, unless the client settles it
before: then the root is told which message it is. Of a stream only what the client has not got is delivered again.
"""

from typing import TYPE_CHECKING

import msgspec

from pandomq import kernel
from pandomq.broker.queue import Queue
from pandomq.broker.streams.consuming import OFFSET
from pandomq.methods import BasicConsumeOk

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.methods import BasicConsume, Method


class Mailbox(Queue):
    __slots__ = ("age", "consume", "next_offset", "prefetch_count", "reads_stream")

    def __init__(self, channel: "FrontChannel", name: str, consume: "BasicConsume | None" = None) -> None:
        """Without a consume it is for what basic.get brings."""
        client = channel.client
        super().__init__(client.vhost, name, owner=client, user=client.user, now_ms=client.broker.now_ms)
        self.kernel.configure(mirror=True)
        self.consume = consume
        """As the root was asked."""
        self.prefetch_count = channel.prefetch_count
        self.age = client.next_age()
        shared = client.vhost.queues.get(name)
        self.reads_stream = shared is not None and shared.stream is not None
        self.next_offset: int | None = None
        """Of a stream: where it goes on; None if the root was asked for a time, and nothing has come yet."""

    def begun(self, answer: "Method") -> None:
        """The root delivers from now on; it says from which queue, or at which offset of a stream."""
        assert isinstance(answer, BasicConsumeOk)
        if not answer.consumer_tag.isdecimal():
            return
        if not self.reads_stream:
            self.kernel.queue_id = int(answer.consumer_tag)
        elif self.next_offset is None:
            self.next_offset = int(answer.consumer_tag)

    def came(self, message: kernel.Message) -> None:
        """The last that a stream has delivered here."""
        self.next_offset = offset_of(message) + 1

    def consume_again(self) -> "BasicConsume":
        """What the next root is asked."""
        assert self.consume is not None
        if self.next_offset is None:
            return self.consume
        return msgspec.structs.replace(self.consume, arguments={**self.consume.arguments, OFFSET: self.next_offset})

    def renew(self) -> None:
        """What came so far came from a root that is gone: messages that the client has not seen are forgotten,
        settlements of the others go by their places. The consumer is gone, too."""
        if self.reads_stream and self.kernel.ready_count:
            self.next_offset = offset_of(self.kernel.snapshot()[0][5])
        self.kernel.delete()
        self.kernel = kernel.Queue(self.vhost.engine, self, 0, False)
        self.kernel.configure(mirror=True)

    def close(self) -> None:
        """As `renew`, and nothing comes any more."""
        is_settled = not self.kernel.unacked_count
        self.kernel.delete()
        if is_settled:
            self.kernel.owner = None


def offset_of(message: kernel.Message) -> int:
    """Of one that a stream has delivered."""
    value = message.find_header(OFFSET.encode())
    assert value is not None, "each of them says it"
    return int.from_bytes(value[1:], "big")
