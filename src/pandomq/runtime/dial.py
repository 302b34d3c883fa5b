"""Opens the connections to other brokers that the node requests; from then on they are like accepted ones."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING

from pandomq.cluster.limits import DIAL_MS_MAX
from pandomq.runtime.connection_socket import ConnectionSocket
from pandomq.runtime.listen import ListenAddress
from pandomq.runtime.tls import TlsFiles, client_context

if TYPE_CHECKING:
    from pandomq.cluster.dialed_connection import Dialed
    from pandomq.runtime.server import Server


class SocketDialer:
    """Attempts that are under way."""

    __slots__ = ("_context", "_server", "_tasks", "tls")

    def __init__(self, server: Server) -> None:
        self._server = server
        self.tls: TlsFiles | None = None
        self._context: ssl.SSLContext | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def read_tls_files(self) -> ssl.SSLContext | None:
        """Reads them again, for `use`. Raises OSError naming the file at fault."""
        return None if self.tls is None else client_context(self.tls)

    def use(self, context: ssl.SSLContext | None) -> None:
        """From the next connection on."""
        self._context = context

    def dial(self, dialed: Dialed) -> None:
        task = asyncio.get_running_loop().create_task(self._connect(dialed))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self, dialed: Dialed) -> None:
        def begin(socket: ConnectionSocket, _transport: asyncio.Transport) -> Dialed:
            dialed.socket = socket
            self._server.dialed(dialed)
            return dialed

        try:
            host, port = ListenAddress.parse(dialed.address)
            async with asyncio.timeout(DIAL_MS_MAX / 1000):
                await asyncio.get_running_loop().create_connection(
                    lambda: ConnectionSocket(self._server, begin), host, port, ssl=self._context
                )
        except TimeoutError:
            self._server.not_dialed(dialed, "no response")
        except (OSError, ValueError) as error:
            self._server.not_dialed(dialed, _reason(error))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


def _reason(error: OSError | ValueError) -> str:
    # One line for people; asyncio's own message begins with the errno and the address, which is known.
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the peer's certificate was rejected: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {(error.reason or str(error)).replace('_', ' ').lower()}"
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return "the peer closed the connection"
    return ((error.strerror if isinstance(error, OSError) else None) or str(error)).lower()
