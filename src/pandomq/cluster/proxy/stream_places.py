"""Where a consumer of a stream goes on when the root is another one: after the last message that its client has got.

So its wish is made one that means the same at any root: the root says at which offset it begins, and each delivery
which one it has. What the client got and has not acknowledged does not come again: of streams acks are credit, no more.
"""

from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.broker.streams.consuming import OFFSET, time_of
from pandomq.cluster.proxy.mailbox import Mailbox
from pandomq.fieldtable import Timestamp

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.cluster.proxy.front_client import FrontClient
    from pandomq.methods import BasicConsume

_SECOND_US: Final = 1_000_000


def with_lasting_time(consume: "BasicConsume", now_ms: int) -> "BasicConsume":
    """An hour ago means an hour before now, also if another root is asked later."""
    wish = consume.arguments.get(OFFSET)
    time_us = time_of(wish, now_ms) if isinstance(wish, str) else None
    if time_us is None:
        return consume
    return msgspec.structs.replace(consume, arguments={**consume.arguments, OFFSET: Timestamp(time_us // _SECOND_US)})


def note_offsets(client: "FrontClient", run: "kernel.DeliveryRun") -> None:
    """Of each consumer the last delivery counts, so few are looked at."""
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
