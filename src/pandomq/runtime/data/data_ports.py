"""The listening sockets of the data port: they exist before the node, so that it knows its ports. A client that
connects before the node can serve it waits in the backlog of the system.
"""

from __future__ import annotations

import errno
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pandomq.node.settings import NodeSettings
from pandomq.node.views.records import ListenerView
from pandomq.runtime.data.data_listener import DataListener
from pandomq.runtime.endpoints import Endpoints
from pandomq.runtime.listen import ListenAddress, listening_sockets

if TYPE_CHECKING:
    from pandomq.runtime.clock import Clock
    from pandomq.runtime.server import Server


class DataPorts:
    __slots__ = ("_by_tls", "_plain", "_through_proxy", "_tls")

    def __init__(self, endpoints: Endpoints) -> None:
        """Raises OSError if a configured address is unavailable."""
        self._plain = _listening(endpoints.data, may_move=endpoints.data_may_move)
        self._by_tls = _listening(endpoints.data_tls, may_move=endpoints.data_may_move)
        self._tls = endpoints.tls
        self._through_proxy = endpoints.data_proxy_protocol

    def told_to(self, settings: NodeSettings) -> NodeSettings:
        """The settings with the actual ports."""
        return msgspec.structs.replace(settings, data=settings.data.with_ports(_port(self._plain), _port(self._by_tls)))

    def serve(self, server: Server, clock: Clock, store: Path) -> DataListener:
        """Starts serving. Raises OSError if the TLS files are unusable."""
        listener = DataListener(lambda: server.data_sessions, clock.now_ms, server.wake, store)
        listeners = server.node.views.listeners
        plain = listener.listen(self._plain, through_proxy=self._through_proxy)
        listeners += [ListenerView("data", *address) for address in plain]
        if self._by_tls:
            listeners += [ListenerView("data/ssl", *address) for address in listener.listen(self._by_tls, self._tls)]
        return listener


def _listening(address: ListenAddress | None, *, may_move: bool) -> list[socket.socket]:
    if address is None:
        return []
    try:
        return listening_sockets(address)
    except OSError as error:
        if not may_move or error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        return listening_sockets(address._replace(port=0))


def _port(sockets: list[socket.socket]) -> int:
    return sockets[0].getsockname()[1] if sockets else 0
