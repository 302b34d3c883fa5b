"""Listening sockets.

A client that says "localhost" may mean ::1, so a broker that listens on the IPv4 loopback listens on the IPv6 one too
where there is one.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq.runtime.door import Door, House
from pandomq.runtime.tls import TlsFiles, server_context

if TYPE_CHECKING:
    from pandomq.runtime.dial import Dialing

BACKLOG: Final = 4096
"""Connections the kernel holds until they are accepted; a storm beyond it is retried by TCP."""


class Address(NamedTuple):
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """HOST:PORT, [::1]:PORT, :PORT or PORT. Raises ValueError with what is wrong."""
        host, colon, port = text.rpartition(":")
        if not port.isdigit() or int(port) > 65535:
            raise ValueError(f"'{text}' is not an address: expected HOST:PORT, for example 127.0.0.1:5672")
        if not colon or not host:
            host = "127.0.0.1" if not colon else "0.0.0.0"
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listener:
    """One listening socket and who answers there. Its TLS files can be read again while it listens."""

    __slots__ = ("_door", "_house", "_sock", "_tls", "address")

    def __init__(self, sock: socket.socket, house: House, tls: TlsFiles | None = None) -> None:
        host, port = sock.getsockname()[:2]
        self.address = Address(host, port)
        self._sock = sock
        self._house = house
        self._tls = tls
        self._door: Door | None = None

    def start(self) -> None:
        """Raises OSError if the TLS files are no good."""
        self._door = Door(self._sock, self._house, self.read_tls_files())

    def read_tls_files(self) -> ssl.SSLContext | None:
        """As they are now, for `use`. Raises OSError naming the file at fault."""
        return None if self._tls is None else server_context(self._tls)

    def use(self, context: ssl.SSLContext | None) -> None:
        """From the next connection on."""
        if self._door is not None and context is not None:
            self._door.context = context

    async def close(self) -> None:
        """Who was on the way in is in or gone when this is over."""
        door, self._door = self._door, None
        if door is not None:
            await door.close()
        self._sock.close()


class Renewal:
    """The TLS files of all listeners, and of who dials, read again: used by all of them or by none."""

    __slots__ = ("_contexts",)

    def __init__(self, listeners: Iterable[Listener | Dialing]) -> None:
        """Raises OSError naming the file at fault."""
        self._contexts = [(listener, listener.read_tls_files()) for listener in listeners]

    def use(self) -> None:
        for listener, context in self._contexts:
            listener.use(context)


def listening_sockets(address: Address) -> list[socket.socket]:
    """One socket, or two for the loopback. Raises OSError if the address cannot be had."""
    if address.host not in ("localhost", "127.0.0.1"):
        return [_listening_socket(address)]
    first = _listening_socket(Address("127.0.0.1", address.port))
    try:
        second = _listening_socket(Address("::1", first.getsockname()[1]))
    except OSError as error:
        # No IPv6 on this machine, or somebody else has that port there: the IPv4 loopback is enough.
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EADDRINUSE):
            return [first]
        first.close()
        raise
    return [first, second]


def _listening_socket(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((address.host, address.port))
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock
