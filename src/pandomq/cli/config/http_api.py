"""The `[http]` section, and proxies: its conditions, and the names that it makes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pandomq.cli.config.keys import OFF
from pandomq.cli.config.sections import Configuration
from pandomq.node.clients.proxy_header import TrustedProxies
from pandomq.runtime.listen import ListenAddress

_HOST_NAME: Final = re.compile(r"(?![0-9.]+$)[A-Za-z0-9]([A-Za-z0-9._-]{0,252}[A-Za-z0-9])?", re.ASCII)
"""Addresses need not be listed."""


def host_names(configuration: Configuration) -> tuple[str, ...]:
    """The configured names, and the host at which the API listens, if it is no address."""
    listen = configuration.node.http
    own = [] if listen == OFF else [ListenAddress.parse(listen).host]
    return tuple(dict.fromkeys((*configuration.http.host_names, *filter(_HOST_NAME.fullmatch, own))))


def problems(configuration: Configuration) -> Iterator[str]:
    for name in configuration.http.host_names:
        if _HOST_NAME.fullmatch(name) is None:
            yield f"http.host_names has '{name}': expected host names without a port, for example mq.example.com"
    for text in configuration.node.trusted_proxies:
        try:
            TrustedProxies([text])
        except ValueError as error:
            yield f"node.trusted_proxies has '{text}': expected addresses or networks, for example 10.0.0.0/8 ({error})"
