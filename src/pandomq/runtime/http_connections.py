"""The open connections of the HTTP server: whose they are, and which one makes room where it is crowded.

There are two limits: for all connections, and for those from one network. When one of them is reached, the longest idle
connection there is closed, and one that no user has logged in on before all others, even if it has a request in
progress: a login may wait in line. A client between two requests can connect again, so neither idle connections nor
logins ever keep anybody out. If every connection has a request of a user in progress, a few more may enter to send
health checks; other requests on them are refused with the reason.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from ipaddress import ip_address
from typing import Final

import msgspec

from pandomq import limits
from pandomq.node.clients.penalties import network_of
from pandomq.node.settings import NodeSettings

log = logging.getLogger("pandomq")

SPARE_MAX: Final = 64
"""Connections beyond the limits, for health checks."""
LOOPBACK_NETWORKS: Final = 3
"""The loopback counts as this many networks: a proxy on this machine may stand for many clients."""
CROWDED_LOG_S: Final = 60.0
"""Time between two log lines about refused connections."""
_LOOPBACK: Final = "loopback"


class ConnectionLimits(msgspec.Struct, frozen=True):
    connections_max: int = limits.HTTP_CONNECTIONS_MAX
    per_network_max: int = limits.HTTP_CONNECTIONS_PER_NETWORK_MAX
    """0 means none."""


def connection_limits(settings: NodeSettings) -> ConnectionLimits:
    return ConnectionLimits(settings.http_connections_max, settings.http_connections_per_network_max)


class OpenConnection:
    """One connection, as the server and the application see it."""

    __slots__ = ("_abort", "crowds", "is_logged_in", "network", "refusal")

    def __init__(self, host: str, abort: Callable[[], None]) -> None:
        self._abort = abort
        self.network = _network_of(host)
        self.crowds: tuple[_Crowd, ...] = ()
        """It counts in each of them."""
        self.is_logged_in = False
        """A request on it had a valid login."""
        self.refusal: str | None = None
        """The reason why only health checks are answered on it."""

    def close(self) -> None:
        self._abort()


class _Crowd:
    """Connections that share a limit."""

    __slots__ = ("busy", "idle")

    def __init__(self) -> None:
        self.busy: dict[OpenConnection, None] = {}
        """The longest busy first."""
        self.idle: dict[OpenConnection, None] = {}
        """The longest idle first."""

    @property
    def count(self) -> int:
        return len(self.busy) + len(self.idle)

    def first_to_go(self) -> OpenConnection | None:
        strangers = (one for these in (self.idle, self.busy) for one in these if not one.is_logged_in)
        return next(strangers, None) or next(iter(self.idle), None)


class HttpConnections:
    """All open connections."""

    __slots__ = ("_all", "_log_after_s", "_of_network", "_spare", "limits")

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        """May be replaced."""
        self._all = _Crowd()
        self._spare = _Crowd()
        self._of_network: dict[str, _Crowd] = {}
        self._log_after_s = 0.0

    def __len__(self) -> int:
        return self._all.count + self._spare.count

    def enter(self, coming: OpenConnection) -> None:
        """Makes room if it is crowded."""
        coming.refusal = self._objection(coming.network)
        crowds: tuple[_Crowd, ...]
        if coming.refusal is None:
            crowds = (self._all, self._of_network.setdefault(coming.network, _Crowd()))
        else:
            self._complain(coming)
            if self._spare.count >= SPARE_MAX:
                # No user logs in on these.
                self._make_room(self._spare)
            crowds = (self._spare,)
        coming.crowds = crowds
        self.is_idle(coming)

    def is_busy(self, connection: OpenConnection) -> None:
        """A request on it is in progress, or its answer is not sent."""
        for crowd in connection.crowds:
            crowd.idle.pop(connection, None)
            crowd.busy.setdefault(connection)

    def is_idle(self, connection: OpenConnection) -> None:
        """It is between two requests, or before the first."""
        for crowd in connection.crowds:
            crowd.busy.pop(connection, None)
            crowd.idle.pop(connection, None)
            crowd.idle[connection] = None

    def leave(self, connection: OpenConnection) -> None:
        for crowd in connection.crowds:
            crowd.busy.pop(connection, None)
            crowd.idle.pop(connection, None)
        connection.crowds = ()
        of_network = self._of_network.get(connection.network)
        if of_network is not None and not of_network.count:
            del self._of_network[connection.network]

    def _objection(self, network: str) -> str | None:
        of_network = self._of_network.get(network)
        network_max = self.limits.per_network_max * (LOOPBACK_NETWORKS if network == _LOOPBACK else 1)
        if of_network is not None and 0 < network_max <= of_network.count and not self._make_room(of_network):
            return (
                f"all {network_max} connections from the network {network} have a request in progress "
                "(limits.http_connections_per_network_max): try again in a moment"
            )
        all_max = self.limits.connections_max
        if self._all.count >= all_max and not self._make_room(self._all):
            return (
                f"all {all_max} connections have a request in progress (limits.http_connections_max): try again in a "
                "moment"
            )
        return None

    def _make_room(self, crowd: _Crowd) -> bool:
        leaving = crowd.first_to_go()
        if leaving is None:
            return False
        self.leave(leaving)
        leaving.close()
        return True

    def _complain(self, coming: OpenConnection) -> None:
        now_s = time.monotonic()
        if now_s >= self._log_after_s:
            self._log_after_s = now_s + CROWDED_LOG_S
            log.warning("HTTP connection from %s is limited to health checks: %s", coming.network, coming.refusal)


def _network_of(host: str) -> str:
    network = network_of(host)
    try:
        return _LOOPBACK if ip_address(network.partition("/")[0]).is_loopback or host == "::1" else network
    except ValueError:
        return network
