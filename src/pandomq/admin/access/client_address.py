"""The client address of a request.

It is the socket's peer, unless that is a trusted proxy: then it is the last address in X-Forwarded-For that is not a
trusted proxy's. A request that any proxy has forwarded never counts as one from the loopback, whatever its headers are.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from starlette.requests import Request

    from pandomq.node.clients.proxy_header import TrustedProxies

_OF_PROXIES: Final = (
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x-client-ip",
    "cf-connecting-ip",
    "true-client-ip",
)
"""Headers with which a proxy marks a forwarded request."""


class ClientAddress(NamedTuple):
    peer: tuple[str, int]
    relayed: bool
    """A proxy forwarded it."""


def client_address(request: Request, trusted: TrustedProxies) -> ClientAddress:
    peer = ("", 0) if request.client is None else (request.client.host, request.client.port)
    headers = request.headers
    if not any(name in headers for name in _OF_PROXIES):
        return ClientAddress(peer, relayed=False)
    if peer[0] in trusted:
        for text in reversed(",".join(headers.getlist("x-forwarded-for")).split(",")):
            host = _address(text)
            if host is None:
                break
            peer = (host, 0)
            if host not in trusted:
                break
    return ClientAddress(peer, relayed=True)


def _address(text: str) -> str | None:
    """An address, with or without a port. Anything else is forged."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ip_address(text))
    except ValueError:
        return None
