"""One connection to the data port: passes bytes to the node, and parts of answers to the client.

Data in a file goes from there to the socket without being copied through this process (sendfile), in a thread, because
the disk may be slow; with TLS it is read piece by piece. A client that does not read delays only its own answers, and
no thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar, cast

from pandomq import limits
from pandomq.node.data.effects import FileRange, PayloadPart
from pandomq.runtime.connection_socket import PacedReading, address_of
from pandomq.runtime.tls import certificate_name

if TYPE_CHECKING:
    from pandomq.node.data.session import DataSession
    from pandomq.node.data.sessions import DataSessions
    from pandomq.runtime.data.data_listener import DataListener

log = logging.getLogger("pandomq")

T = TypeVar("T")

PIECE_BYTES: Final = 512 * limits.KIB
"""Bytes read at once of a file that has to be encrypted."""


class DataSocket(PacedReading, asyncio.BufferedProtocol):
    def __init__(self, listener: DataListener, *, through_proxy: bool = False) -> None:
        self._listener = listener
        self._through_proxy = through_proxy
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._plain: socket.socket | None = None
        """The socket of the connection, for writing past the transport; None with TLS."""
        self._dispatcher: DataSessions | None = None
        self._client: DataSession | None = None
        self._parts: deque[PayloadPart] = deque()
        self._pump: asyncio.Task[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._closing = self._given_up = self._lost = False

    # Events of the loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        tls = transport.get_extra_info("ssl_object")
        if tls is not None:
            self._transport.set_write_buffer_limits(high=limits.OUTGOING_HIGH_BYTES, low=limits.OUTGOING_LOW_BYTES)
        else:
            self._plain = socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno()))
            self._plain.setblocking(False)
        self._listener.sockets.add(self)
        self._dispatcher = self._listener.sessions()
        if self._dispatcher is None:
            self._transport.abort()
            return
        try:
            self._client = self._dispatcher.accept(
                self,
                address_of(transport, "peername"),
                self._listener.now_ms(),
                tls=tls is not None,
                certificate_name=certificate_name(tls),
                through_proxy=self._through_proxy,
            )
        except Exception as error:
            self._dispatcher.guard.doubt(error)
            self._transport.abort()
        self._listener.wake()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._listener.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._dispatcher is not None and self._client is not None:
            self._dispatcher.receive(self._client, self._listener.read_buffer[:nbytes], self._listener.now_ms())
            self._listener.wake()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._progressed()
        self._may_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        self._parts.clear()
        self._transport = None
        self._listener.sockets.discard(self)
        if self._pump is None:
            self._let_go()
        elif self._plain is not None:
            # The sender notices, and releases it.
            with contextlib.suppress(OSError):
                self._plain.shutdown(socket.SHUT_RDWR)
        self._may_write.set()
        if self._dispatcher is not None and self._client is not None:
            self._dispatcher.disconnected(self._client)
            self._listener.wake()

    # Requests of the node.

    def send(self, parts: Sequence[PayloadPart]) -> None:
        if self._lost or self._given_up:
            return
        self._parts.extend(parts)
        if self._pump is None:
            self._pump = self._loop.create_task(self._send_all())

    def close(self) -> None:
        """Closes it once everything is sent, with time for the client to close first."""
        self._closing = True
        if self._pump is None:
            self._close_transport()

    def abort(self) -> None:
        """Closes it at once: later answers are not sent."""
        self._given_up = True
        self._parts.clear()
        if self._plain is not None:
            with contextlib.suppress(OSError):
                self._plain.shutdown(socket.SHUT_RDWR)
        if self._transport is not None:
            self._transport.abort()

    # Sending.

    async def _send_all(self) -> None:
        try:
            while self._parts and not self._lost:
                part = self._take()
                if isinstance(part, FileRange):
                    await self._send_file(part)
                else:
                    await self._send_octets(part)
            whole = not (self._lost or self._given_up)
        except OSError as error:
            whole = False
            if not (self._lost or self._given_up):
                log.info("data port client %s disconnected: %s", self._peer, error.strerror or error)
                self.abort()
        finally:
            self._pump = None
            if self._lost:
                self._let_go()
        if whole:
            self._sent()

    def _take(self) -> PayloadPart:
        """The next part; what follows it in the same file goes with it."""
        part = self._parts.popleft()
        while isinstance(part, FileRange) and self._parts:
            after = self._parts[0]
            if not isinstance(after, FileRange) or (after.file, after.offset) != (part.file, part.offset + part.length):
                break
            self._parts.popleft()
            part = part._replace(length=part.length + after.length)
        return part

    async def _send_octets(self, octets: bytes | memoryview) -> None:
        if self._plain is not None:
            # The following bytes of a file go in the same packet: the client need not wake up for the few bytes before
            # it.
            flags = socket.MSG_MORE if self._parts and isinstance(self._parts[0], FileRange) else 0
            try:
                sent = self._plain.send(octets, flags)
            except BlockingIOError:
                sent = 0
            if sent < len(octets):
                await self._loop.sock_sendall(self._plain, memoryview(octets)[sent:])
            self._progressed()
        elif self._transport is not None:
            self._transport.write(octets)
            await self._may_write.wait()

    async def _send_file(self, part: FileRange) -> None:
        path = self._listener.path_of(part.file)
        at, end = part.offset, part.offset + part.length
        while at < end and not self._lost:
            at += await self._send_some(path, at, end - at)

    async def _send_some(self, path: Path, offset: int, length: int) -> int:
        plain = self._plain
        if plain is None:
            octets = await self._in_thread(_read, path, offset, min(length, PIECE_BYTES))
            await self._send_octets(octets)
            return len(octets)
        sent = await self._in_thread(_send, plain, path, offset, length)
        if sent:
            self._progressed()
        if sent < length:
            await self._writable(plain)
        return sent

    async def _writable(self, plain: socket.socket) -> None:
        if self._lost:
            return
        self._may_write.clear()
        self._loop.add_writer(plain, self._may_write.set)
        try:
            await self._may_write.wait()
        finally:
            self._loop.remove_writer(plain)

    def _in_thread(self, call: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._loop.run_in_executor(self._listener.threads, call, *arguments)

    def _progressed(self) -> None:
        if self._dispatcher is not None and self._client is not None:
            self._dispatcher.progressed(self._client, self._listener.now_ms())

    def _sent(self) -> None:
        if self._closing:
            self._close_transport()
        if self._dispatcher is not None and self._client is not None:
            self._dispatcher.sent(self._client, self._listener.now_ms())
            self._listener.wake()

    # The end.

    def _close_transport(self) -> None:
        if self._transport is None or self._transport.is_closing():
            return
        if self._plain is not None:
            with contextlib.suppress(OSError):
                self._plain.shutdown(socket.SHUT_WR)
        else:
            self._loop.call_later(limits.TLS_LINGER_MS / 1000, self._transport.close)
        self._loop.call_later(limits.LINGER_MS / 1000, self.abort)

    def _let_go(self) -> None:
        if self._plain is not None:
            self._plain.close()
            self._plain = None

    @property
    def _peer(self) -> str:
        return "" if self._client is None else self._client.peer_name


def _send(plain: socket.socket, path: Path, offset: int, length: int) -> int:
    """Returns how many bytes the system took at once, possibly none."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    sent = 0
    try:
        while sent < length:
            taken = os.sendfile(plain.fileno(), file, offset + sent, length - sent)
            if not taken:
                raise _ends_too_early(path)
            sent += taken
    except BlockingIOError:
        pass
    finally:
        os.close(file)
    return sent


def _read(path: Path, offset: int, length: int) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        octets = os.pread(file, length, offset)
    finally:
        os.close(file)
    if not octets:
        raise _ends_too_early(path)
    return octets


def _ends_too_early(path: Path) -> OSError:
    return OSError(f"{path.name} ends too early")
