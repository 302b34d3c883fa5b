"""Publishers: endpoints that write messages as fast as allowed, or at a given rate, and read the confirms."""

import socket
import struct
import time

from pandomq.bench import limits
from pandomq.bench.backlog import BacklogLimit
from pandomq.bench.client import wire
from pandomq.bench.client.batch import Batch
from pandomq.bench.client.confirms import ConfirmCounter
from pandomq.bench.percentiles import LatencySamples

_STAMP = struct.Struct(">Q")
_RECEIVE_BYTES = 65536


class FloodPublisher:
    """Sends one batch repeatedly, as far as the confirm window and the backlog allow."""

    def __init__(self, connection: socket.socket, batch: Batch, confirm_window: int, backlog: BacklogLimit) -> None:
        self.connection = connection
        self._batch = batch
        self._window = confirm_window
        self._backlog = backlog
        self._sent_bytes = 0
        self._stopping = False
        self.published = 0
        self.confirms = ConfirmCounter()

    def fileno(self) -> int:
        return self.connection.fileno()

    @property
    def wants_write(self) -> bool:
        return self._allowed_bytes() > 0

    def _allowed_bytes(self) -> int:
        if self._stopping:
            # A message that was begun is finished: a partial message could not be distinguished from a lost one.
            return -self._sent_bytes % self._batch.message_bytes
        room = self._backlog.room
        if self._window:
            room = min(room, self._window - self.published + self.confirms.settled)
        return (self.published + room) * self._batch.message_bytes - self._sent_bytes

    def writable(self) -> None:
        allowed = self._allowed_bytes()
        if allowed <= 0:
            return
        data = self._batch.data
        at = self._sent_bytes % len(data)
        try:
            self._sent_bytes += self.connection.send(data[at : at + allowed])
        except BlockingIOError:
            return
        published = self._sent_bytes // self._batch.message_bytes
        self._backlog.published += published - self.published
        self.published = published

    def readable(self) -> None:
        self.confirms.feed(_receive(self.connection))

    def stop(self) -> None:
        self._stopping = True


class PacedPublisher:
    """Sends messages at a steady rate; each contains the time at which it was due, not when it was sent.

    So the latency includes the wait of every message while the broker holds the publisher back.
    """

    def __init__(
        self,
        connection: socket.socket,
        batch: Batch,
        *,
        body_bytes: int,
        interval_ns: int,
        start_ns: int,
        backlog: BacklogLimit,
        samples: LatencySamples,
    ) -> None:
        self.connection = connection
        self._templates = [bytearray(message) for message in batch.messages]
        self._stamp_at = batch.message_bytes - 1 - body_bytes
        self._backlog = backlog
        self._samples = samples
        self._interval_ns = interval_ns
        self._start_ns = start_ns
        self._pending = bytearray()
        self._stopping = False
        self.published = 0
        self.confirms = ConfirmCounter()

    def fileno(self) -> int:
        return self.connection.fileno()

    @property
    def wants_write(self) -> bool:
        return bool(self._pending)

    @property
    def next_due_ns(self) -> int:
        return self._start_ns + self.published * self._interval_ns

    def send_due(self, now_ns: int) -> None:
        while not self._stopping and self.next_due_ns <= now_ns and len(self._pending) < limits.SOCKET_BUFFER_BYTES:
            template = self._templates[self.published % len(self._templates)]
            _STAMP.pack_into(template, self._stamp_at, self.next_due_ns)
            self._pending += template
            self.published += 1
            self._backlog.published += 1
        if self._pending:
            self.writable()

    def writable(self) -> None:
        try:
            sent = self.connection.send(self._pending)
        except BlockingIOError:
            return
        del self._pending[:sent]

    def readable(self) -> None:
        self.confirms.feed(_receive(self.connection))
        now_ns = time.monotonic_ns()
        # Publish number n was due at a known time, so nothing has to be kept for each message.
        zeroth_due_ns = self._start_ns - self._interval_ns
        for numbers in self.confirms.newly_settled:
            self._samples.add_since([zeroth_due_ns + number * self._interval_ns for number in numbers], now_ns)

    def stop(self) -> None:
        self._stopping = True


def _receive(connection: socket.socket) -> bytes:
    try:
        data = connection.recv(_RECEIVE_BYTES)
    except BlockingIOError:
        return b""
    if not data:
        raise wire.BrokerRefused("the broker closed a publisher's connection")
    return data
