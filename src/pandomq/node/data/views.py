"""Frozen copies of the data port's connections and traffic."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.node.data import limits
from pandomq.node.data.session import DataSessionState

if TYPE_CHECKING:
    from pandomq.node.data.session import DataSession
    from pandomq.node.data.sessions import DataSessions

_STATES: Final = {
    DataSessionState.NEW: "starting",
    DataSessionState.LOGGING_IN: "starting",
    DataSessionState.READY: "running",
    DataSessionState.ENDED: "closing",
}


class DataConnectionView(msgspec.Struct, frozen=True):
    name: str
    peer: tuple[str, int]
    tls: bool
    user: str
    """Empty until the client has logged in, as is the vhost."""
    vhost: str
    state: str
    connected_ms: int
    requests: int
    """Requests that were begun."""
    waiting: int
    """Requests that are not answered."""
    received_bytes: int
    sent_bytes: int


class DataPortView(msgspec.Struct, frozen=True):
    """All of it, since the broker started."""

    connections: int
    connections_max: int
    requests: int
    received_bytes: int
    sent_bytes: int


class DataViews:
    __slots__ = ("_dispatcher",)

    def __init__(self, sessions: DataSessions) -> None:
        self._dispatcher = sessions

    def connections(self) -> Iterator[DataConnectionView]:
        for client in list(self._dispatcher.clients):
            if not client.gone:
                yield _view(client)

    def summary(self) -> DataPortView:
        traffic = self._dispatcher.traffic
        return DataPortView(
            connections=len(self._dispatcher.clients),
            connections_max=limits.CONNECTIONS_MAX,
            requests=traffic.requests,
            received_bytes=traffic.received_bytes,
            sent_bytes=traffic.sent_bytes,
        )


def _view(client: DataSession) -> DataConnectionView:
    known = client.state is not DataSessionState.NEW and client.state is not DataSessionState.LOGGING_IN
    return DataConnectionView(
        name=client.peer_name,
        peer=client.peer,
        tls=client.tls,
        user=client.user if known else "",
        vhost=client.vhost_name if known else "",
        state=_STATES[client.state],
        connected_ms=client.since_ms,
        requests=client.traffic.requests,
        waiting=len(client.requests) + (client.under_way is not None),
        received_bytes=client.traffic.received_bytes,
        sent_bytes=client.traffic.sent_bytes,
    )
