"""Opens a connection without blocking: from connect to the answer that makes it usable.

An endpoint of the event loop. The caller passes the bytes to send after the broker's `open-ok`, and the method whose
arrival makes it ready. Afterwards only its socket is used.
"""

import errno
import os
import socket
import struct

from pandomq.bench import limits
from pandomq.bench.client import wire
from pandomq.bench.client.session import server_version
from pandomq.bench.client.url import BrokerUrl, no_connection

Address = tuple[str, int]


class Handshake:
    def __init__(
        self, url: BrokerUrl, where: Address, family: socket.AddressFamily, request: bytes, answer: wire.Method
    ) -> None:
        """Raises OSError, here or later, if there is no listener; BrokerRefused later, if the broker rejects it."""
        self.connection = socket.socket(family, socket.SOCK_STREAM)
        self.connection.setblocking(False)
        self._url = url
        self._request = request
        self._answer = answer
        self._connecting = True
        self.rest = b""
        """Bytes read after the answer."""
        self.ready = False
        self.server = ""
        self.frame_bytes_max = limits.FRAME_BYTES_MAX
        outcome = self.connection.connect_ex(where)
        if outcome not in (0, errno.EINPROGRESS):
            self.connection.close()
            raise self._cannot_connect(outcome)

    def _cannot_connect(self, outcome: int) -> OSError:
        url = self._url
        return OSError(outcome, no_connection(url, os.strerror(outcome)))

    def fileno(self) -> int:
        return self.connection.fileno()

    @property
    def wants_write(self) -> bool:
        return self._connecting

    def writable(self) -> None:
        if not self._connecting:
            return
        outcome = self.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if outcome:
            raise self._cannot_connect(outcome)
        self._connecting = False
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection.send(wire.PROTOCOL_HEADER)

    def readable(self) -> None:
        if self._connecting:
            self.writable()
        try:
            data = self.connection.recv(4096)
        except BlockingIOError:
            return
        if not data:
            raise wire.BrokerRefused("the broker closed a connection that was being opened")
        self.rest += data
        while not self.ready and len(self.rest) >= wire.FRAME_OVERHEAD_BYTES:
            kind, _, size = wire.FRAME_HEAD.unpack_from(self.rest)
            end = size + wire.FRAME_OVERHEAD_BYTES
            if len(self.rest) < end:
                return
            payload, self.rest = self.rest[wire.FRAME_HEAD.size : end - 1], self.rest[end:]
            if kind == wire.FRAME_METHOD:
                self._take(payload)

    def _take(self, payload: bytes) -> None:
        got = struct.unpack_from(">HH", payload)
        if got == wire.CONNECTION_START:
            self.server = server_version(payload)
            self.connection.send(wire.start_ok(self._url.user, self._url.password))
        elif got == wire.CONNECTION_TUNE:
            channel_max, frame_max, _ = struct.unpack_from(">HIH", payload, 4)
            self.frame_bytes_max = min(frame_max or limits.FRAME_BYTES_MAX, limits.FRAME_BYTES_MAX)
            self.connection.send(
                wire.tune_ok(channel_max, self.frame_bytes_max) + wire.connection_open(self._url.vhost)
            )
        elif got == wire.CONNECTION_OPEN_OK:
            self.connection.send(self._request)
        elif got == self._answer:
            self.ready = True
        elif got in (wire.CONNECTION_CLOSE, wire.CHANNEL_CLOSE):
            raise wire.BrokerRefused(wire.refusal(payload))
