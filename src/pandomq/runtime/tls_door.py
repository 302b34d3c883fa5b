"""The way in through TLS: connections from their accept to the end of the TLS handshake.

Nobody behind the door hears of a client before: who shows no good certificate, talks something else or takes too long
is turned away here, with one line in the log. How many may stand in the door at once is asked of the house, whose
limits they count against.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Final

import msgspec

log = logging.getLogger("pandomq")

ACCEPT_PAUSE_S: Final = 0.2
"""After an accept for which the system had no room: trying again at once would only keep the loop busy."""


class House(msgspec.Struct, frozen=True):
    """Who is behind the door, and the rules of the moment."""

    make_guest: Callable[[], asyncio.BaseProtocol]
    handshake_s_max: Callable[[], float]
    has_room: Callable[[int], bool]
    """Whether one more may come in while so many are standing in the door."""


class TlsDoor:
    def __init__(self, sock: socket.socket, house: House, context: ssl.SSLContext) -> None:
        self.context = context
        """Of connections from now on; may be replaced."""
        self._sock = sock
        self._house = house
        self._loop = asyncio.get_running_loop()
        self._standing: set[asyncio.Task[None]] = set()
        self._accepting = self._loop.create_task(self._accept())

    def close(self) -> None:
        self._accepting.cancel()
        for handshake in self._standing:
            handshake.cancel()

    async def _accept(self) -> None:
        while True:
            try:
                connection, peer = await self._loop.sock_accept(self._sock)
            except OSError as error:
                log.error("cannot accept another connection: %s", error.strerror or error)
                await asyncio.sleep(ACCEPT_PAUSE_S)
                continue
            if not self._house.has_room(len(self._standing)):
                log.warning("refused %s before TLS: too many connections are open", _name(peer))
                connection.close()
                continue
            handshake = self._loop.create_task(self._shake_hands(connection, _name(peer)))
            self._standing.add(handshake)
            handshake.add_done_callback(self._standing.discard)

    async def _shake_hands(self, connection: socket.socket, peer: str) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._house.make_guest,
                connection,
                ssl=self.context,
                ssl_handshake_timeout=self._house.handshake_s_max(),
            )
        except ConnectionResetError:
            # As those do who only look whether the port is open.
            log.debug("%s hung up before TLS", peer)
        except OSError as error:
            log.warning("no TLS with %s: %s", peer, _reason(error))


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
