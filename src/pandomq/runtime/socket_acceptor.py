"""Accepts connections at one address, and hands them over when their handshake is done.

It accepts a few in each pass of the loop, and none while there is no room for another handshake: further connections
wait in the backlog of the system, so that a storm of clients takes no more memory and no longer passes than a few
clients do.

With TLS the server gets a client only after its handshake: a client that shows no good certificate, uses another
protocol or takes too long is rejected here, with a line in the log.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

import msgspec

from pandomq.limits import HANDSHAKES_MAX, HANDSHAKES_PER_STEP_MAX

log = logging.getLogger("pandomq")

ACCEPTS_PER_PASS_MAX: Final = HANDSHAKES_PER_STEP_MAX
"""Connections that arrive faster than they are processed would only wait inside."""
TLS_ACCEPTS_PER_PASS_MAX: Final = 4
"""A handshake of TLS takes a millisecond or more of this thread."""
FULL_PAUSE_S: Final = 0.01
"""Time until it checks again whether there is room."""
ACCEPT_PAUSE_S: Final = 0.2
"""Pause after an accept that failed for lack of system resources: retrying at once would only keep the loop busy."""


class SocketOwner(msgspec.Struct, frozen=True):
    """The server behind this socket, and its current rules."""

    make_protocol: Callable[[], asyncio.BaseProtocol]
    handshake_s_max: Callable[[], float]
    has_room: Callable[[int], bool]
    """Whether one more connection may enter while this many are in their handshake. Otherwise it is closed."""
    limit: str
    """The limit that `has_room` checks, for the log."""
    handshake_room: Callable[[], int] = lambda: HANDSHAKES_MAX
    """How many more connections may enter now, including those in their handshake. Others wait in the backlog."""


class SocketAcceptor:
    def __init__(self, sock: socket.socket, owner: SocketOwner, context: ssl.SSLContext | None) -> None:
        """Without a context there is no TLS."""
        self.context = context
        """For connections from now on; may be replaced."""
        self._sock = sock
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self._standing: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._accepts_max = ACCEPTS_PER_PASS_MAX if context is None else TLS_ACCEPTS_PER_PASS_MAX
        self._open()

    async def close(self) -> None:
        """Stops accepting. When this has ended, every connection in its handshake is handed over or closed."""
        self._shut()
        if self.context is not None:
            # A handshake may take its time. Without one connections are handed over at once; if one were closed just
            # then, its protocol would never be notified.
            for coming in self._standing:
                coming.cancel()
        if self._standing:
            await asyncio.wait(self._standing)

    def _open(self) -> None:
        self._pause = None
        self._loop.add_reader(self._sock, self._accept)

    def _shut(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        self._loop.remove_reader(self._sock)

    def _rest(self, pause_s: float) -> None:
        self._shut()
        self._pause = self._loop.call_later(pause_s, self._open)

    def _accept(self) -> None:
        """A connection is waiting. The loop calls this once in each pass while that is so."""
        room = self._owner.handshake_room() - len(self._standing)
        if room <= 0:
            self._rest(FULL_PAUSE_S)
        for _ in range(min(room, self._accepts_max)):
            try:
                connection, peer = self._sock.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                # The client closed it while it waited.
                continue
            except OSError as error:
                log.error(
                    "cannot accept another connection, and will try again in %g s: %s",
                    ACCEPT_PAUSE_S,
                    error.strerror or error,
                )
                self._rest(ACCEPT_PAUSE_S)
                return
            self._take(connection, peer)

    def _take(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        if self.context is not None and not self._owner.has_room(len(self._standing)):
            log.warning(
                "rejected connection from %s before TLS: too many connections are open, %d of them in the handshake; "
                "the limit is %s",
                _name(peer),
                len(self._standing),
                self._owner.limit,
            )
            connection.close()
            return
        connection.setblocking(False)
        coming = self._loop.create_task(self._let_in(connection, peer))
        self._standing.add(coming)
        coming.add_done_callback(self._standing.discard)

    async def _let_in(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._owner.make_protocol,
                connection,
                ssl=self.context,
                ssl_handshake_timeout=None if self.context is None else self._owner.handshake_s_max(),
            )
        except ConnectionResetError:
            # For example a port check.
            log.debug("client %s closed the connection during the TLS handshake", _name(peer))
        except OSError as error:
            log.warning("TLS handshake with %s failed: %s", _name(peer), _reason(error))


def _name(address: tuple[str, int]) -> str:
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the client was rejected: {error.verify_message}"
    # OpenSSL's errors have a reason; those of uvloop, or of our context, have only a message.
    reason: str | None = getattr(error, "reason", None)
    if reason:
        return reason.replace("_", " ").lower()
    return error.strerror or str(error)
