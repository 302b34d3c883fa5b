"""The PROXY protocol: a proxy sends the real address of the client in the first bytes of a connection.

A header of version 1 is one line of text, one of version 2 is binary. The broker reads headers only at listeners that
are configured for them, and only from the addresses of trusted proxies: a header can claim any address.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, NamedTuple

TEXT_START: Final = b"PROXY "
BINARY_START: Final = b"\r\n\r\n\0\r\nQUIT\n"
TEXT_BYTES_MAX: Final = 107
"""The maximum in the protocol's specification, with the line's end."""
BINARY_BYTES_MAX: Final = 1024
_BINARY_HEAD: Final = struct.Struct(">12sBBH")
_LOCAL, _PROXY = 0x20, 0x21
_ADDRESS_BYTES: Final = {0x11: 4, 0x21: 16}


class ProxyHeader(NamedTuple):
    peer: tuple[str, int] | None
    """The client's address; None if the header names no client, or if the proxy connects for itself (a health
    check)."""
    length: int


class NotAProxyHeader(Exception):
    """The connection does not begin with a proxy's header, or comes from an untrusted address. Its text is the
    reason."""

    def __init__(self, reason: str = "the connection does not begin with a PROXY header") -> None:
        super().__init__(reason)


class TrustedProxies:
    """The proxies whose headers are trusted: addresses and networks."""

    __slots__ = ("_networks",)

    def __init__(self, written: Iterable[str]) -> None:
        """Raises ValueError."""
        self._networks: list[IPv4Network | IPv6Network] = [ip_network(text) for text in written]

    def __contains__(self, host: object) -> bool:
        try:
            address = ip_address(str(host).partition("%")[0])
        except ValueError:
            return False
        if address.version == 6 and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        return any(address in network for network in self._networks)


def is_loopback(host: str) -> bool:
    return host == "::1" or host.removeprefix("::ffff:").startswith("127.")


class BehindProxy:
    """The end of a connection that a proxy may have relayed."""

    __slots__ = ("_is_near", "_is_trusted", "before", "peer")

    def __init__(self, peer: tuple[str, int]) -> None:
        self.peer = peer
        self.before: bytes | None = None
        """The received part of the proxy's header, until it is complete; None where there is no proxy."""
        self._is_near = is_loopback(peer[0])
        self._is_trusted = False

    def expect_proxy(self, trusted: TrustedProxies) -> None:
        """The connection has to begin with a header of one of these proxies."""
        self.before = b""
        self._is_trusted = self.peer[0] in trusted

    @property
    def from_loopback(self) -> bool:
        """The socket's peer is on this machine, and so is the client, if a proxy names its address; if a proxy names
        none, False."""
        return self._is_near and is_loopback(self.peer[0])

    def behind_proxy(self, data: bytes | memoryview) -> memoryview:
        """Returns what follows the proxy's header, which has the peer's real address. Raises NotAProxyHeader."""
        assert self.before is not None
        if not self._is_trusted:
            raise NotAProxyHeader(f"proxy {self.peer[0]} is not among node.trusted_proxies")
        self.before += data
        header = read_proxy_header(self.before)
        if header is None:
            return memoryview(b"")
        rest, self.before = self.before[header.length :], None
        if header.peer is None:
            self._is_near = False
        else:
            self.peer = header.peer
        return memoryview(rest)


def read_proxy_header(data: bytes) -> ProxyHeader | None:
    """The header at the start of the data; None if it is not complete yet."""
    if data[:1] == TEXT_START[:1]:
        return _read_text(data)
    if data[:1] == BINARY_START[:1]:
        return _read_binary(data)
    if not data:
        return None
    raise NotAProxyHeader


def _read_text(data: bytes) -> ProxyHeader | None:
    if not data.startswith(TEXT_START[: len(data)]):
        raise NotAProxyHeader
    line, end, _ = data[:TEXT_BYTES_MAX].partition(b"\r\n")
    if not end:
        if len(data) >= TEXT_BYTES_MAX:
            raise NotAProxyHeader
        return None
    words = line.decode("latin-1").split(" ")
    length = len(line) + len(end)
    if words[1] == "UNKNOWN":
        return ProxyHeader(None, length)
    if len(words) != 6 or words[1] not in ("TCP4", "TCP6") or not _is_port(words[4]):
        raise NotAProxyHeader
    try:
        host = str(ip_address(words[2]))
    except ValueError:
        raise NotAProxyHeader from None
    return ProxyHeader((host, int(words[4])), length)


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535


def _read_binary(data: bytes) -> ProxyHeader | None:
    if not data.startswith(BINARY_START[: len(data)]):
        raise NotAProxyHeader
    if len(data) < _BINARY_HEAD.size:
        return None
    _, command, family, size = _BINARY_HEAD.unpack_from(data)
    length = _BINARY_HEAD.size + size
    if command not in (_LOCAL, _PROXY) or length > BINARY_BYTES_MAX:
        raise NotAProxyHeader
    if len(data) < length:
        return None
    if command == _LOCAL or family not in _ADDRESS_BYTES:
        return ProxyHeader(None, length)
    octets = _ADDRESS_BYTES[family]
    if size < 2 * octets + 4:
        raise NotAProxyHeader
    start = _BINARY_HEAD.size
    host = str(ip_address(data[start : start + octets]))
    (port,) = struct.unpack_from(">H", data, start + 2 * octets)
    return ProxyHeader((host, port), length)
