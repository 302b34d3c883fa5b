"""Frozen copies of who is connected to the data port, and of what has gone through it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from pandomq.node.data import limits
from pandomq.node.data.client import State

if TYPE_CHECKING:
    from pandomq.node.data.client import DataClient
    from pandomq.node.data.desk import DataDesk

_STATES: Final = {
    State.NEW: "starting",
    State.LOGGING_IN: "starting",
    State.READY: "running",
    State.ENDED: "closing",
}


class DataConnectionView(msgspec.Struct, frozen=True):
    name: str
    peer: tuple[str, int]
    tls: bool
    user: str
    """Empty until it has logged in, as is the vhost."""
    vhost: str
    state: str
    connected_ms: int
    requests: int
    """That were begun."""
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
    __slots__ = ("_desk",)

    def __init__(self, desk: DataDesk) -> None:
        self._desk = desk

    def connections(self) -> Iterator[DataConnectionView]:
        for client in list(self._desk.clients):
            if not client.gone:
                yield _view(client)

    def summary(self) -> DataPortView:
        traffic = self._desk.traffic
        return DataPortView(
            connections=len(self._desk.clients),
            connections_max=limits.CONNECTIONS_MAX,
            requests=traffic.requests,
            received_bytes=traffic.received_bytes,
            sent_bytes=traffic.sent_bytes,
        )


def _view(client: DataClient) -> DataConnectionView:
    known = client.state is not State.NEW and client.state is not State.LOGGING_IN
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
