"""Connections to other brokers: opens what the node asks for, and hands over bytes like a client's socket does."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, cast

from pandomq.cluster.limits import DIAL_MS_MAX
from pandomq.runtime.client_socket import ClientSocket
from pandomq.runtime.listen import Address
from pandomq.runtime.tls import TlsFiles, client_context

if TYPE_CHECKING:
    from pandomq.node.dialed import Dialed
    from pandomq.runtime.server import Server


class PeerSocket(ClientSocket):
    """The dialing end of a link."""

    __slots__ = ("_dialed",)

    def __init__(self, server: Server, dialed: Dialed) -> None:
        super().__init__(server)
        self._dialed = dialed

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._take(cast(asyncio.Transport, transport))
        self._dialed.socket = self
        self._server.dialed(self._dialed)

    def write_all(self, parts: list[bytes | memoryview]) -> None:
        """One after the other, in one call of the system if it takes them."""
        if self._transport is not None:
            self._transport.writelines(parts)

    def buffer_updated(self, nbytes: int) -> None:
        self._server.dialed_received(self._dialed, nbytes)

    def write(self, data: bytes | memoryview) -> None:
        # A dial that takes too long is called off, perhaps in the moment in which it is answered: the transport is gone
        # then, and the node hears of that after it has begun to speak.
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def pause_writing(self) -> None:
        self._server.dialed_paused(self._dialed)

    def resume_writing(self) -> None:
        self._server.dialed_resumed(self._dialed)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.dialed_lost(self._dialed)


class Dialing:
    """Attempts that are under way."""

    __slots__ = ("_context", "_server", "_tasks", "tls")

    def __init__(self, server: Server) -> None:
        self._server = server
        self.tls: TlsFiles | None = None
        self._context: ssl.SSLContext | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def read_tls_files(self) -> ssl.SSLContext | None:
        """As they are now, for `use`. Raises OSError naming the file at fault."""
        return None if self.tls is None else client_context(self.tls)

    def use(self, context: ssl.SSLContext | None) -> None:
        """From the next connection on."""
        self._context = context

    def dial(self, dialed: Dialed) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(dialed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, dialed: Dialed) -> None:
        try:
            host, port = Address.parse(dialed.address)
            async with asyncio.timeout(DIAL_MS_MAX / 1000):
                await asyncio.get_running_loop().create_connection(
                    lambda: PeerSocket(self._server, dialed), host, port, ssl=self._context
                )
        except TimeoutError:
            self._server.not_dialed(dialed, "no answer")
        except (OSError, ValueError) as error:
            self._server.not_dialed(dialed, _reason(error))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


def _reason(error: OSError | ValueError) -> str:
    # One line for people; asyncio's own begins with the errno and the address, which is known.
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"no TLS: {(error.reason or str(error)).replace('_', ' ').lower()}"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "it closed the connection"
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()
