"""Fills a queue with persistent messages that all differ: each has to be copied."""

import socket
import time

from pandomq.bench.client import wire
from pandomq.bench.client.closing import close_connections
from pandomq.bench.client.confirms import ConfirmCounter
from pandomq.bench.client.session import CHANNEL, LoadSession
from pandomq.bench.client.url import BrokerUrl
from pandomq.bench.loop import Loop
from pandomq.bench.run import Show
from tools.compare.clusters.enduring import NUMBER

BODY_BYTES = 1024
_WINDOW = 2000
_BLOCK = 200
"""Messages that are numbered and sent together."""
_RECEIVE_BYTES = 65536
_STALLED_S = 60.0


class Filler:
    """An endpoint that publishes a range of numbers."""

    def __init__(self, connection: socket.socket, queue: str, numbers: range, frame_bytes_max: int) -> None:
        self.connection = connection
        self.confirms = ConfirmCounter()
        properties = wire.MessageProperties(persistent=True)
        message = wire.publish(CHANNEL, "", queue, properties, bytes(BODY_BYTES), frame_bytes_max)
        self._numbers = numbers
        self._published = 0
        self._message_bytes = len(message)
        self._block = bytearray(message * _BLOCK)
        self._pending = memoryview(self._block)[:0]

    def fileno(self) -> int:
        return self.connection.fileno()

    @property
    def _room(self) -> int:
        return min(len(self._numbers) - self._published, _WINDOW - self._published + self.confirms.settled, _BLOCK)

    @property
    def wants_write(self) -> bool:
        return bool(self._pending) or self._room > 0

    def writable(self) -> None:
        if not self._pending:
            self._number_next()
        try:
            sent = self.connection.send(self._pending)
        except BlockingIOError:
            return
        self._pending = self._pending[sent:]

    def _number_next(self) -> None:
        # The whole block was sent, so it may be overwritten.
        count = self._room
        number_at = self._message_bytes - 1 - BODY_BYTES
        for place in range(count):
            NUMBER.pack_into(
                self._block, place * self._message_bytes + number_at, self._numbers[self._published + place]
            )
        self._published += count
        self._pending = memoryview(self._block)[: count * self._message_bytes]

    def readable(self) -> None:
        try:
            data = self.connection.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        if not data:
            raise wire.BrokerRefused("the broker closed the connection of the publisher")
        self.confirms.feed(data)


def fill(url: BrokerUrl, queue: str, numbers: range, show: Show) -> None:
    """Returns when all are confirmed. Raises BrokerRefused if there is no progress any more."""
    session = LoadSession(url)
    session.call(wire.confirm_select(CHANNEL), wire.CONFIRM_SELECT_OK)
    filler = Filler(session.release()[0], queue, numbers, session.frame_bytes_max)
    loop = Loop()
    loop.add(filler)
    moved_s, before = time.monotonic(), 0
    try:
        while (count := filler.confirms.acked) < len(numbers):
            loop.turn(1.0)
            if count != before:
                moved_s, before = time.monotonic(), count
                show("fill", count / len(numbers), 0)
            elif time.monotonic() - moved_s > _STALLED_S:
                raise wire.BrokerRefused(f"fill: no progress for {_STALLED_S:.0f} s after {count:,} messages")
    finally:
        loop.close()
        close_connections([filler.connection])
