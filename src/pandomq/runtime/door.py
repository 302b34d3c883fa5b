"""The way in at one address: connections from their accept until whoever is behind the door knows of them.

A few are accepted in each pass of the loop, and none while the house has no room for another handshake: they wait in
the backlog of the system, so that a storm of clients takes no more memory and no longer passes than a handful does.

With TLS nobody behind the door hears of a client before its handshake is over: who shows no good certificate, talks
something else or takes too long is turned away here, with a line in the log.
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
"""What comes in faster than it is dealt with would only wait inside."""
TLS_ACCEPTS_PER_PASS_MAX: Final = 4
"""A handshake of TLS takes a millisecond or more of this very thread."""
FULL_PAUSE_S: Final = 0.01
"""Until it is looked again whether there is room."""
ACCEPT_PAUSE_S: Final = 0.2
"""After an accept for which the system had no room: trying again at once would only keep the loop busy."""


class House(msgspec.Struct, frozen=True):
    """Who is behind the door, and the rules of the moment."""

    make_guest: Callable[[], asyncio.BaseProtocol]
    handshake_s_max: Callable[[], float]
    has_room: Callable[[int], bool]
    """Whether one more may come in while so many are standing in the door. Who may not is hung up on."""
    handshake_room: Callable[[], int] = lambda: HANDSHAKES_MAX
    """How many more may come in for now, those in the door included. Others wait outside."""


class Door:
    def __init__(self, sock: socket.socket, house: House, context: ssl.SSLContext | None) -> None:
        """Without a context there is no TLS."""
        self.context = context
        """Of connections from now on; may be replaced."""
        self._sock = sock
        self._house = house
        self._loop = asyncio.get_running_loop()
        self._standing: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._accepts_max = ACCEPTS_PER_PASS_MAX if context is None else TLS_ACCEPTS_PER_PASS_MAX
        self._open()

    async def close(self) -> None:
        """Who stands in the door is in or gone when this is over."""
        self._shut()
        if self.context is not None:
            # A handshake may take its time. Without one they are in at once; and a connection that is broken off just
            # then would be one of which its protocol never hears that it is closed.
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
        """Somebody is there. The loop calls this once in each pass for as long as that is so."""
        room = self._house.handshake_room() - len(self._standing)
        if room <= 0:
            self._rest(FULL_PAUSE_S)
        for _ in range(min(room, self._accepts_max)):
            try:
                connection, peer = self._sock.accept()
            except BlockingIOError:
                return
            except ConnectionAbortedError:
                # It has gone while it waited.
                continue
            except OSError as error:
                log.error("cannot accept another connection: %s", error.strerror or error)
                self._rest(ACCEPT_PAUSE_S)
                return
            self._take(connection, peer)

    def _take(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        if self.context is not None and not self._house.has_room(len(self._standing)):
            log.warning("refused %s before TLS: too many connections are open", _name(peer))
            connection.close()
            return
        connection.setblocking(False)
        coming = self._loop.create_task(self._let_in(connection, peer))
        self._standing.add(coming)
        coming.add_done_callback(self._standing.discard)

    async def _let_in(self, connection: socket.socket, peer: tuple[str, int]) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._house.make_guest,
                connection,
                ssl=self.context,
                ssl_handshake_timeout=None if self.context is None else self._house.handshake_s_max(),
            )
        except ConnectionResetError:
            # As those do who only look whether the port is open.
            log.debug("%s hung up before TLS", _name(peer))
        except OSError as error:
            log.warning("no TLS with %s: %s", _name(peer), _reason(error))


def _name(address: tuple[str, int]) -> str:
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    # What OpenSSL says has a reason; what uvloop says, or our context, has only words.
    reason: str | None = getattr(error, "reason", None)
    if reason:
        return reason.replace("_", " ").lower()
    return error.strerror or str(error)
