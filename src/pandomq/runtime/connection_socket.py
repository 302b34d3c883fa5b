"""The socket of one connection of the node, accepted or dialed: passes bytes to the server and takes bytes from it.

All sockets read into the server's one buffer; the bytes of a read are parsed before the next read begins, so an idle
connection has no buffer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from pandomq import limits
from pandomq.node.clients.client_link import ClientLink

if TYPE_CHECKING:
    from pandomq.node.output import AnyLink
    from pandomq.runtime.server import Server


class PacedReading:
    """Reading from a socket, with pauses."""

    __slots__ = ()

    _transport: asyncio.Transport | None

    def pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()


class ConnectionSocket(PacedReading, asyncio.BufferedProtocol):
    __slots__ = ("_begin", "_server", "_transport", "link")

    def __init__(self, server: Server, begin: Callable[[ConnectionSocket, asyncio.Transport], AnyLink | None]) -> None:
        """`begin` is called when the connection is established, and makes it known to the node; it returns None if the
        node failed."""
        self._server = server
        self._begin = begin
        self._transport: asyncio.Transport | None = None
        self.link: AnyLink | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=limits.OUTGOING_HIGH_BYTES, low=limits.OUTGOING_LOW_BYTES)
        self.link = self._begin(self, self._transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        link = self.link
        if isinstance(link, ClientLink) and link.client is None and link.hello is None:
            return self._server.handshake_buffer
        return self._server.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self.link is not None:
            self._server.received(self.link, nbytes)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        if self.link is not None:
            self._server.paused(self.link)

    def resume_writing(self) -> None:
        if self.link is not None:
            self._server.resumed(self.link)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.link is not None:
            self._server.disconnected(self.link)
            self.link = None
        # The node releases it later, and may write to it until then.
        self._transport = None

    def write(self, data: bytes | memoryview) -> None:
        # A dial that takes too long is cancelled, possibly just when it is answered: then the transport is closed, and
        # the node gets that event after it has begun to write.
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Sends the buffered bytes and then an end of file; the socket lingers.

        The other end may still be writing what it had queued before its close. If the socket were closed by then, it
        would get a broken pipe instead of our close-ok.
        """
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            # TLS cannot end one direction alone. A client that has read the last bytes closes the connection long
            # before.
            self._server.later(limits.TLS_LINGER_MS, self._transport.close)
        self._server.later(limits.LINGER_MS, self.abort)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def address_of(transport: asyncio.BaseTransport, end: str) -> tuple[str, int]:
    address = transport.get_extra_info(end)
    return (address[0], address[1]) if address else ("", 0)
