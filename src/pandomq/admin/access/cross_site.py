"""Rejects changes requested by foreign web pages.

A browser adds a stored login to every request that a page makes it send. So a change is rejected if its Origin or its
Sec-Fetch-Site shows that it comes from a page of another site, and if its Host is no name of this broker: a site may
let its own name resolve to this address. Addresses are names of this broker, as `localhost` is; others are configured
(`http.host_names`).
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pandomq.admin.refusals import Refusal

if TYPE_CHECKING:
    from starlette.datastructures import Headers

    from pandomq.node.settings import NodeSettings

_OWN_SITES: Final = ("same-origin", "none")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class HostNames:
    """The names of this broker in requests."""

    __slots__ = ("_configured", "_names")

    def __init__(self, settings: NodeSettings) -> None:
        self._configured = frozenset(map(str.lower, settings.http_host_names))
        places = (settings.cluster.http, settings.cluster.advertise)
        self._names = self._configured | {"localhost", *_of_machine(), *(_host_of(place) for place in places if place)}

    def check(self, headers: Headers) -> None:
        """Raises Refusal (403) for a change that comes from a page, unless that is a page of this broker."""
        host = headers.get("host", "")
        if not self._is_own(_host_of(host)):
            raise _refused(f"'{host}' is not a host name of this broker: add it to http.host_names")
        site = headers.get("sec-fetch-site", "none").lower()
        if site not in _OWN_SITES:
            raise _refused(
                f"rejected a cross-site request (sec-fetch-site: {site}): send it from a page of this broker"
            )
        origin = headers.get("origin")
        if origin is not None and not self._is_own_origin(origin, host):
            raise _refused(
                f"rejected a request from the origin '{origin}': add its host to http.host_names to allow it"
            )

    def _is_own(self, name: str) -> bool:
        return name in self._names or name.endswith(".localhost") or _is_address(name)

    def _is_own_origin(self, origin: str, host: str) -> bool:
        try:
            parts = urlsplit(origin)
            port = parts.port
        except ValueError:
            return False
        name = (parts.hostname or "").rstrip(".")
        if parts.scheme not in _DEFAULT_PORTS or not name:
            return False
        asked_name, asked_port = _divided(host)
        default = _DEFAULT_PORTS[parts.scheme]
        if (name, port or default) == (asked_name, asked_port or default):
            return True
        # Behind a proxy that uses another name.
        return name in self._configured and port in (None, default, asked_port)


def _refused(reason: str) -> Refusal:
    return Refusal(403, "forbidden", reason, {"connection": "close"})


def _of_machine() -> Iterable[str]:
    name = socket.gethostname().lower()
    return {name, name.partition(".")[0]}


def _host_of(place: str) -> str:
    return _divided(place)[0]


def _divided(place: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, in lower case and without the brackets of IPv6; port 0 if there is none."""
    if place.startswith("["):
        host, _, rest = place[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = place.partition(":")
    is_number = port.isascii() and port.isdigit() and len(port) <= 5
    return host.lower().rstrip("."), int(port) if is_number else 0


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
