"""The PROXY protocol: who a connection really comes from, told by the proxy in front, in its first octets.

Both versions: one line of text, or a binary header. Only for listeners that are configured for it: everybody who can
connect there can claim any address.
"""

from __future__ import annotations

import struct
from ipaddress import ip_address
from typing import Final, NamedTuple

TEXT_START: Final = b"PROXY "
BINARY_START: Final = b"\r\n\r\n\0\r\nQUIT\n"
TEXT_BYTES_MAX: Final = 107
"""As the protocol's text says, with the line's end."""
BINARY_BYTES_MAX: Final = 1024
_BINARY_HEAD: Final = struct.Struct(">12sBBH")
_LOCAL, _PROXY = 0x20, 0x21
_ADDRESS_BYTES: Final = {0x11: 4, 0x21: 16}


class ProxyHeader(NamedTuple):
    peer: tuple[str, int] | None
    """None: the proxy speaks for itself (a health check)."""
    length: int


class NotAProxyHeader(Exception):
    """The connection does not begin as one from a proxy must."""


class BehindProxy:
    """The end of a connection before which a proxy may stand."""

    __slots__ = ("before", "peer")

    def __init__(self, peer: tuple[str, int]) -> None:
        self.peer = peer
        self.before: bytes | None = None
        """What came of the proxy's header, until it is complete; None where no proxy stands in front."""

    def behind_proxy(self, data: bytes | memoryview) -> memoryview:
        """What follows the proxy's header, which says who the peer really is. Raises NotAProxyHeader."""
        assert self.before is not None
        self.before += data
        header = read_proxy_header(self.before)
        if header is None:
            return memoryview(b"")
        rest, self.before = self.before[header.length :], None
        self.peer = header.peer or self.peer
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
