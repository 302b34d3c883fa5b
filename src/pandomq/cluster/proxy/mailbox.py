"""Where deliveries of one consumer of a shared queue arrive from the root, to be passed on as the client takes them.

For the client's channel it is a queue like any other, but it keeps nothing: what the client settles is settled at the
root. When the root is another one, all that came from the old one is void: it will be delivered again.
"""

from typing import TYPE_CHECKING

from pandomq import kernel
from pandomq.broker.queue import Queue

if TYPE_CHECKING:
    from pandomq.cluster.proxy.front_channel import FrontChannel
    from pandomq.methods import BasicConsume


class Mailbox(Queue):
    __slots__ = ("age", "consume", "prefetch_count")

    def __init__(self, channel: "FrontChannel", name: str, consume: "BasicConsume | None" = None) -> None:
        """Without a consume it is for what basic.get brings."""
        client = channel.client
        super().__init__(client.vhost, name, owner=client, user=client.user, now_ms=client.broker.now_ms)
        self.kernel.configure(mirror=True)
        self.consume = consume
        """As the root was asked."""
        self.prefetch_count = channel.prefetch_count
        self.age = client.next_age()

    def renew(self) -> None:
        """What came so far is void: messages that the client has not seen are gone, settlements of the others have no
        effect. The consumer is gone, too."""
        self.kernel.delete()
        self.kernel = kernel.Queue(self.vhost.engine, self, 0, False)
        self.kernel.configure(mirror=True)

    def close(self) -> None:
        """As `renew`, and nothing comes any more."""
        is_settled = not self.kernel.unacked_count
        self.kernel.delete()
        if is_settled:
            self.kernel.owner = None
