"""Consumers: endpoints that read deliveries into one buffer, count them, and ack by count."""

import socket
import struct
import time
from typing import Protocol

from pandomq.bench import limits
from pandomq.bench.backlog import BacklogLimit
from pandomq.bench.client import wire
from pandomq.bench.client.session import CHANNEL
from pandomq.bench.client.stride import DeliveryCounter, DeliverySpan
from pandomq.bench.percentiles import LatencySamples


class BodyReader(Protocol):
    """Reads bodies in the deliveries of a read."""

    def look(self, buffer: bytearray, spans: list[DeliverySpan]) -> None: ...


class StampReader:
    """Computes the time from publish to delivery from bodies that begin with their due time."""

    def __init__(self, body_bytes: int, samples: LatencySamples) -> None:
        self._body_bytes = body_bytes
        self._samples = samples
        self._formats: dict[int, struct.Struct] = {}

    def look(self, buffer: bytearray, spans: list[DeliverySpan]) -> None:
        now_ns = time.monotonic_ns()
        with memoryview(buffer) as view:
            for start, deliveries, stride in spans:
                stamps = self._format(stride).iter_unpack(view[start : start + deliveries * stride])
                self._samples.add_since([stamp for (stamp,) in stamps], now_ns)

    def _format(self, stride: int) -> struct.Struct:
        # The body is at the end of a delivery, before the last frame's end octet.
        if stride not in self._formats:
            self._formats[stride] = struct.Struct(f">{stride - 1 - self._body_bytes}xQ{self._body_bytes - 7}x")
        return self._formats[stride]


class LoadConsumer:
    def __init__(
        self,
        connection: socket.socket,
        read_before: bytes,
        *,
        ack_every: int,
        message_bytes: int,
        receive_bytes: int,
        backlog: BacklogLimit,
        reader: BodyReader | None,
    ) -> None:
        """`ack_every` 0 acks nothing. `read_before` are the bytes that were read from the connection while it was set
        up."""
        self.connection = connection
        self._ack_every = ack_every
        self._acked = 0
        self._pending = bytearray()
        self._backlog = backlog
        self._reader = reader
        self._buffer = bytearray(max(receive_bytes, 4 * message_bytes, 2 * len(read_before)))
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = len(read_before)
        self._view[: self._end] = read_before
        self.counter = DeliveryCounter()
        self._count()

    def fileno(self) -> int:
        return self.connection.fileno()

    @property
    def wants_write(self) -> bool:
        return bool(self._pending)

    def readable(self) -> None:
        try:
            received = self.connection.recv_into(self._view[self._end :])
        except BlockingIOError:
            return
        if not received:
            raise wire.BrokerRefused("the broker closed a consumer's connection")
        self._end += received
        self._count()
        if self._ack_every:
            self._ack(self.counter.delivered // self._ack_every * self._ack_every)

    def _count(self) -> None:
        before = self.counter.delivered
        self._start = self.counter.count(self._buffer, self._start, self._end)
        self._backlog.delivered += self.counter.delivered - before
        if self._reader is not None and self.counter.spans:
            self._reader.look(self._buffer, self.counter.spans)
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end > len(self._buffer) // 2:
            self._make_room()

    def _make_room(self) -> None:
        """Moves the unfinished delivery to the front; only once in half a buffer, otherwise large bodies would move
        often."""
        rest = bytes(self._view[self._start : self._end])
        if len(rest) > len(self._buffer) // 2:
            if len(self._buffer) >= limits.RECEIVE_BYTES_MAX:
                raise wire.BrokerRefused("a delivery is larger than the receive buffer may grow")
            self._buffer = bytearray(2 * len(self._buffer))
            self._view = memoryview(self._buffer)
        self._view[: len(rest)] = rest
        self._start, self._end = 0, len(rest)

    def _ack(self, upto: int) -> None:
        if upto <= self._acked:
            return
        step = self._ack_every
        tags = [*range(self._acked + step, upto, step), upto]
        self._acked = upto
        self._pending += b"".join([wire.basic_ack(CHANNEL, tag, multiple=step > 1) for tag in tags])
        self.writable()

    def writable(self) -> None:
        try:
            sent = self.connection.send(self._pending)
        except BlockingIOError:
            return
        del self._pending[:sent]

    def ack_rest(self) -> None:
        """Acks the deliveries after the last full step; the measurement is done by then."""
        if self._ack_every:
            self._ack(self.counter.delivered)
