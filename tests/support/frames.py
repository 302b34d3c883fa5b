"""A TCP connection that carries AMQP frames, without knowledge of the protocol's states.

The sent bytes can be shaped: held back and sent as one piece, or byte by byte, to show that a broker does not depend on
the division into segments.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from collections.abc import Iterator
from typing import NamedTuple, Protocol

METHOD, HEADER, BODY, HEARTBEAT = 1, 2, 3, 8
FRAME_END = 0xCE
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
PATIENCE_S = 20.0


class Frame(NamedTuple):
    kind: int
    channel: int
    payload: bytes


class EndOfStreamError(AssertionError):
    """The broker closed the socket where a frame was expected."""


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + bytes([FRAME_END])


class Stream(Protocol):
    """The part of a socket's interface that is used here."""

    def sendall(self, data: bytes | bytearray, /) -> None: ...
    def send(self, data: bytes, /) -> int: ...
    def recv(self, count: int, /) -> bytes: ...
    def settimeout(self, seconds: float, /) -> None: ...
    def close(self) -> None: ...


def dial(host: str, port: int) -> socket.socket:
    """Opens a TCP connection on which every send is a segment of its own, as far as possible."""
    connected = socket.create_connection((host, port), PATIENCE_S)
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connected


class FrameSocket:
    """Sends bytes and frames, reads frames."""

    def __init__(self, stream: Stream) -> None:
        self.socket = stream
        self._unread = bytearray()
        self._held: bytearray | None = None
        self.sent: list[bytes] = []
        self.recording = False

    def send_bytes(self, data: bytes) -> None:
        if self.recording:
            self.sent.append(data)
        if self._held is not None:
            self._held += data
        else:
            self.socket.sendall(data)

    def send_frame(self, kind: int, channel: int, payload: bytes) -> None:
        self.send_bytes(frame(kind, channel, payload))

    @contextlib.contextmanager
    def in_segments(self, how: str) -> Iterator[None]:
        """Shape what is sent meanwhile: `whole` as one piece, `bytewise` byte by byte, `asis` as usual, `none` not."""
        if how == "asis":
            yield
            return
        self._held = bytearray()
        try:
            yield
        finally:
            held, self._held = self._held, None
            if how == "whole":
                self.socket.sendall(held)
            elif how == "bytewise":
                for byte in held:
                    self.socket.send(bytes([byte]))

    def read_frame(self, timeout_s: float = PATIENCE_S) -> Frame:
        """Returns the next frame; raises `TimeoutError` if none arrives in time, `EndOfStreamError` if none can
        arrive."""
        deadline = time.monotonic() + timeout_s
        while True:
            found = self._take_frame()
            if found is not None:
                return found
            self._fill(deadline)

    def _take_frame(self) -> Frame | None:
        if len(self._unread) < 7:
            return None
        kind, channel, size = struct.unpack_from(">BHI", self._unread)
        if len(self._unread) < size + 8:
            return None
        assert self._unread[size + 7] == FRAME_END, "the broker sent a frame without its end octet"
        payload = bytes(self._unread[7 : size + 7])
        del self._unread[: size + 8]
        return Frame(kind, channel, payload)

    def _fill(self, deadline: float) -> None:
        self.socket.settimeout(max(deadline - time.monotonic(), 0.001))
        try:
            piece = self.socket.recv(1 << 20)
        except ConnectionError as error:
            raise EndOfStreamError(f"the connection broke: {error}") from None
        finally:
            self.socket.settimeout(PATIENCE_S)
        if not piece:
            raise EndOfStreamError(f"end of stream; left over: {bytes(self._unread)!r}")
        self._unread += piece

    def read_rest(self, timeout_s: float = PATIENCE_S) -> bytes:
        """Everything up to the end of the stream, as bytes."""
        deadline = time.monotonic() + timeout_s
        with contextlib.suppress(EndOfStreamError):
            while True:
                self._fill(deadline)
        return bytes(self._unread)

    def drop(self) -> None:
        """Closes the socket without a method."""
        self.socket.close()
