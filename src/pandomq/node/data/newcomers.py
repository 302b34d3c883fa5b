"""Clients of the data port that have not logged in: how many each network has, and which of them makes room.

A network is an IPv4 address, or the /64 of an IPv6 address. A client behind a proxy counts once the proxy's header has
named its address.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from pandomq.node.clients.penalties import network_of
from pandomq.node.data import limits
from pandomq.node.data.session import DataSessionState

if TYPE_CHECKING:
    from pandomq.node.data.session import DataSession


class Newcomers:
    __slots__ = ("_networks", "_of_network")

    def __init__(self) -> None:
        self._networks: dict[DataSession, str | None] = {}
        """The network of each client, None if it is not known yet; in the order of connecting."""
        self._of_network: Counter[str] = Counter()

    def add(self, client: DataSession) -> None:
        self._networks[client] = None

    def locate(self, client: DataSession) -> bool:
        """To be called when the client's address is known. False if its network has too many: then the client does not
        count, and is to be closed."""
        network = network_of(client.peer[0])
        if self._of_network[network] >= limits.NEWCOMERS_PER_NETWORK_MAX:
            return False
        self._networks[client] = network
        self._of_network[network] += 1
        return True

    def forget(self, client: DataSession) -> None:
        """The client has logged in, or is gone."""
        network = self._networks.pop(client, None)
        if network is not None:
            self._of_network[network] -= 1
            if not self._of_network[network]:
                del self._of_network[network]

    def idler(self, now_ms: int) -> DataSession | None:
        """The oldest client that has kept the broker waiting for long, or else the oldest whose login waits in line."""
        latest_ms = now_ms - limits.CROWDED_HELLO_MS_MAX
        in_line: DataSession | None = None
        for client in self._networks:
            if client.since_ms > latest_ms:
                break
            if client.state is DataSessionState.NEW and not client.requests:
                return client
            if client.state is DataSessionState.LOGGING_IN and in_line is None:
                in_line = client
        return in_line
