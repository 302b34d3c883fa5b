"""Takes ready messages out of a queue, as a basic.get would, and puts them into the stream of a lease.

All of it is in one entry of the log: if that is lost, nothing has happened. So consumers get no message behind these
messages until it is committed.
"""

from typing import Final

from pandomq import kernel
from pandomq.broker.leases.lease import LeaseRun, runs_of
from pandomq.kernel.constants import ACK
from pandomq.limits import FRAME_BYTES_MAX

_CHANNEL: Final = 1


class Mover:
    """Has a channel of its own, whose messages are unacked only while it works, and to which nothing is ever
    written."""

    __slots__ = ("_channel", "_engine")

    def __init__(self, engine: kernel.Engine) -> None:
        self._engine = engine
        session = kernel.Session(engine, None, kernel.Routes(1), FRAME_BYTES_MAX, 0)
        self._channel = kernel.Channel(session, _CHANNEL, None)

    def move(
        self, source: kernel.Queue, stream: kernel.Queue, messages_max: int, bytes_max: int, now_ms: int
    ) -> list[LeaseRun]:
        """Moves messages in the order of delivery, until their number or the bytes of their bodies reach a maximum; the
        last one may exceed the bytes. It ends early at a message that is on the disk, and has that fetched."""
        engine, channel = self._engine, self._channel
        # Waiting consumers get what came before in this batch.
        engine.deliver(now_ms)
        tag = count = size_bytes = 0
        while count < messages_max and size_bytes < bytes_max:
            taken = source.take(channel, False, now_ms)
            if taken is None:
                break
            tag, count, size_bytes = taken[0], count + 1, size_bytes + taken[2].body_size
        if not count:
            return []
        rows = channel.unacked()
        for row in rows:
            engine.enqueue(None, row[-1], [stream], 0, now_ms)
        source.await_log()
        engine.settle_one(channel, ACK, tag, True, False, now_ms)
        return runs_of(rows)
