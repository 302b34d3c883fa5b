"""Listening sockets.

A client that uses "localhost" may mean ::1, so a broker that listens on the IPv4 loopback also listens on the IPv6
loopback if there is one.
"""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from pandomq.runtime.socket_acceptor import SocketAcceptor, SocketOwner
from pandomq.runtime.tls import TlsFiles, server_context

if TYPE_CHECKING:
    from pandomq.runtime.dial import SocketDialer

PORT_MAX: Final = 65535

BACKLOG: Final = 4096
"""Connections that the system holds until they are accepted; TCP retries those beyond it."""


class ListenAddress(NamedTuple):
    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> ListenAddress:
        """HOST:PORT, [::1]:PORT, :PORT or PORT. Raises ValueError with the reason."""
        host, colon, port = text.rpartition(":")
        if not port.isdigit():
            raise ValueError(f"'{text}' is not an address: expected HOST:PORT, for example 127.0.0.1:5672")
        if int(port) > PORT_MAX:
            raise ValueError(f"'{text}' is not an address: the largest port is {PORT_MAX}")
        if not colon or not host:
            host = "127.0.0.1" if not colon else "0.0.0.0"
        return cls(host.removeprefix("[").removesuffix("]"), int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Listener:
    """One listening socket and its server. Its TLS files can be read again while it listens."""

    __slots__ = ("_acceptor", "_owner", "_sock", "_tls", "address")

    def __init__(self, sock: socket.socket, owner: SocketOwner, tls: TlsFiles | None = None) -> None:
        host, port = sock.getsockname()[:2]
        self.address = ListenAddress(host, port)
        self._sock = sock
        self._owner = owner
        self._tls = tls
        self._acceptor: SocketAcceptor | None = None

    def start(self) -> None:
        """Raises OSError if the TLS files are unusable."""
        self._acceptor = SocketAcceptor(self._sock, self._owner, self.read_tls_files())

    def read_tls_files(self) -> ssl.SSLContext | None:
        """Reads them again, for `use`. Raises OSError naming the file at fault."""
        return None if self._tls is None else server_context(self._tls)

    def use(self, context: ssl.SSLContext | None) -> None:
        """From the next connection on."""
        if self._acceptor is not None and context is not None:
            self._acceptor.context = context

    async def close(self) -> None:
        """Stops accepting. When this has ended, every connection in its handshake is handed over or closed."""
        acceptor, self._acceptor = self._acceptor, None
        if acceptor is not None:
            await acceptor.close()
        self._sock.close()


class Renewal:
    """Reads the TLS files of all listeners and of outgoing connections again: all of them use the new files, or
    none."""

    __slots__ = ("_contexts",)

    def __init__(self, listeners: Iterable[Listener | SocketDialer]) -> None:
        """Raises OSError naming the file at fault."""
        self._contexts = [(listener, listener.read_tls_files()) for listener in listeners]

    def use(self) -> None:
        for listener, context in self._contexts:
            listener.use(context)


def listening_sockets(address: ListenAddress) -> list[socket.socket]:
    """One socket, or two for the loopback. Raises OSError if the address is unavailable."""
    if address.host not in ("localhost", "127.0.0.1"):
        return [_listening_socket(address)]
    first = _listening_socket(ListenAddress("127.0.0.1", address.port))
    try:
        second = _listening_socket(ListenAddress("::1", first.getsockname()[1]))
    except OSError as error:
        # No IPv6 on this machine, or another process has that port there: the IPv4 loopback is enough.
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EADDRINUSE):
            return [first]
        first.close()
        raise
    return [first, second]


def _listening_socket(address: ListenAddress) -> socket.socket:
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
