"""One client's socket: hands bytes to the server and takes bytes from it.

All sockets read into the server's one buffer; what a read brought is parsed before the next read begins, so an idle
connection owns no buffer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from pandomq import limits
from pandomq.node.offers import Place

if TYPE_CHECKING:
    from pandomq.node.link import Link
    from pandomq.runtime.server import Server


class PacedReading:
    """A socket that is not read from for a while."""

    __slots__ = ()

    _transport: asyncio.Transport | None

    def pause_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()


class ClientSocket(PacedReading, asyncio.BufferedProtocol):
    __slots__ = ("_place", "_server", "_through_proxy", "_transport", "link")

    def __init__(self, server: Server, *, through_proxy: bool = False, place: Place = Place.BOTH) -> None:
        self._server = server
        self._through_proxy = through_proxy
        self._place = place
        self._transport: asyncio.Transport | None = None
        self.link: Link | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._take(cast(asyncio.Transport, transport))
        self.link = self._server.connected(
            self,
            address_of(transport, "peername"),
            address_of(transport, "sockname"),
            transport.get_extra_info("ssl_object"),
            through_proxy=self._through_proxy,
            place=self._place,
        )

    def _take(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        transport.set_write_buffer_limits(high=limits.OUTGOING_HIGH_BYTES, low=limits.OUTGOING_LOW_BYTES)

    def get_buffer(self, sizehint: int) -> memoryview:
        link = self.link
        if link is not None and link.client is None and link.hello is None:
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
            self._server.lost(self.link)
            self.link = None
        # The node lets it go when it gets to it, and may speak to it until then.
        self._transport = None

    def write(self, data: bytes | memoryview) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def close(self) -> None:
        """Sends what is buffered and then an end of file; the socket lingers.

        A client may still be writing what it had queued before its close. If the socket were gone by then, the client
        would meet a broken pipe instead of our close-ok.
        """
        if self._transport is None or self._transport.is_closing():
            return
        if self._transport.can_write_eof():
            self._transport.write_eof()
        else:
            # TLS cannot end one direction alone. Who has read our last words hangs up long before.
            self._server.later(limits.TLS_LINGER_MS, self._transport.close)
        self._server.later(limits.LINGER_MS, self.abort)

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()


def address_of(transport: asyncio.BaseTransport, end: str) -> tuple[str, int]:
    address = transport.get_extra_info(end)
    return (address[0], address[1]) if address else ("", 0)
