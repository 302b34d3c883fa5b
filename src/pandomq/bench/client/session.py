"""One blocking AMQP connection with one channel: sets things up before a load runs, and cleans up after it.

A session may be passed to the event loop: `release` returns the socket and the bytes after the last answer.
"""

import socket
import struct
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from pandomq.bench import limits
from pandomq.bench.client import wire
from pandomq.bench.client.url import BrokerUrl, no_connection

CHANNEL = 1


class LoadSession:
    def __init__(self, url: BrokerUrl, timeout_s: float = limits.SETUP_TIMEOUT_S) -> None:
        try:
            self._socket = socket.create_connection((url.host, url.port), timeout_s)
        except OSError as error:
            raise OSError(error.errno, no_connection(url, error.strerror or str(error))) from None
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = b""
        self.frame_bytes_max = limits.FRAME_BYTES_MAX
        self.server_version = ""
        try:
            self._shake_hands(url)
        except BaseException:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _shake_hands(self, url: BrokerUrl) -> None:
        self.send(wire.PROTOCOL_HEADER)
        self.server_version = server_version(self.expect(wire.CONNECTION_START))
        self.send(wire.start_ok(url.user, url.password))
        channel_max, frame_max, _ = struct.unpack_from(">HIH", self.expect(wire.CONNECTION_TUNE), 4)
        self.frame_bytes_max = min(frame_max or limits.FRAME_BYTES_MAX, limits.FRAME_BYTES_MAX)
        self.send(wire.tune_ok(channel_max, self.frame_bytes_max) + wire.connection_open(url.vhost))
        self.expect(wire.CONNECTION_OPEN_OK)
        self.call(wire.channel_open(CHANNEL), wire.CHANNEL_OPEN_OK)

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def call(self, request: bytes, reply: wire.Method) -> bytes:
        """Sends one synchronous method and waits for its answer; returns the answer's payload."""
        self.send(request)
        return self.expect(reply)

    def call_all(self, requests: Iterable[bytes], reply: wire.Method) -> None:
        """Pipelines many synchronous methods, in groups small enough that neither side's socket fills up."""
        group: list[bytes] = []
        for request in requests:
            group.append(request)
            if len(group) == 200:
                self._call_group(group, reply)
                group = []
        self._call_group(group, reply)

    def _call_group(self, group: list[bytes], reply: wire.Method) -> None:
        self.send(b"".join(group))
        for _ in group:
            self.expect(reply)

    def expect(self, wanted: wire.Method) -> bytes:
        """The payload of the next method, which must be the wanted one; methods that a broker may send at any time are
        skipped."""
        while True:
            kind, payload = self._next_frame()
            if kind != wire.FRAME_METHOD:
                continue
            got = struct.unpack_from(">HH", payload)
            if got == wanted:
                return payload
            if got in (wire.CONNECTION_CLOSE, wire.CHANNEL_CLOSE):
                raise wire.BrokerRefused(wire.refusal(payload))
            if got not in (wire.CONNECTION_BLOCKED, wire.CONNECTION_UNBLOCKED):
                raise wire.BrokerRefused(f"expected method {wanted}, got {got}")

    def _next_frame(self) -> tuple[int, bytes]:
        self._fill(wire.FRAME_HEAD.size)
        kind, _, size = wire.FRAME_HEAD.unpack_from(self._read)
        end = size + wire.FRAME_OVERHEAD_BYTES
        self._fill(end)
        if self._read[end - 1] != wire.FRAME_END:
            raise wire.BrokerRefused("a frame does not have its announced length")
        payload, self._read = self._read[wire.FRAME_HEAD.size : end - 1], self._read[end:]
        return kind, payload

    def _fill(self, needed_bytes: int) -> None:
        while len(self._read) < needed_bytes:
            data = self._socket.recv(65536)
            if not data:
                raise wire.BrokerRefused("the broker closed the connection")
            self._read += data

    def wait_longer(self) -> None:
        """Extends the timeout for answers that come only when many declarations are done."""
        self._socket.settimeout(limits.BULK_TIMEOUT_S)

    def release(self) -> tuple[socket.socket, bytes]:
        """Returns the socket, now non-blocking, and the bytes that were read after the last answer."""
        self._socket.setblocking(False)
        return self._socket, self._read

    def close(self) -> None:
        try:
            self.send(wire.connection_close())
            self.expect(wire.CONNECTION_CLOSE_OK)
        except (OSError, wire.BrokerRefused):
            # It is closed either way, and nothing was left to send.
            pass
        finally:
            self._socket.close()


def server_version(start_payload: bytes) -> str:
    """Product and version from a connection.start, found by name: the rest of the table is not needed. Our brokers
    announce RabbitMQ's there, and their own beside them."""
    own = _properties(start_payload, b"implementation", b"pandomq_version")
    return " ".join(own if len(own) > 1 else _properties(start_payload, b"product", b"version"))


def _properties(start_payload: bytes, *names: bytes) -> list[str]:
    words = []
    for name in names:
        at = start_payload.find(bytes([len(name)]) + name + b"S")
        if at >= 0:
            at += len(name) + 2
            (length,) = struct.unpack_from(">I", start_payload, at)
            words.append(start_payload[at + 4 : at + 4 + length].decode(errors="replace"))
    return words
