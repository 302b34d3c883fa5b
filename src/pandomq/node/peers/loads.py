"""Collects how many connections each broker has, as the brokers report to each other, and which of them have the
fewest.

A broker reports to those that it is linked to, at most once in `TOLD_EVERY_MS`, and only changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.cluster.load import ClientLoad, decode_load, encode_load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

TOLD_EVERY_MS: Final = 1_000


class Loads:
    """The loads of those brokers that are known to be up."""

    __slots__ = ("_connections", "changed")

    def __init__(self) -> None:
        self._connections: dict[str, int] = {}
        self.changed = False
        """Another broker has the fewest than when this was last set to False, or their order has changed."""

    def note(self, name: str, connections: int) -> None:
        before = self.by_load(self._connections)
        self._connections[name] = connections
        self.changed = self.changed or self.by_load(self._connections) != before

    def forget(self, name: str) -> None:
        self.changed = self._connections.pop(name, None) is not None or self.changed

    def of(self, name: str) -> int | None:
        return self._connections.get(name)

    @property
    def known(self) -> Iterable[str]:
        return self._connections.keys()

    def by_load(self, names: Iterable[str]) -> list[str]:
        """Sorts the brokers by their number of connections, the fewest first; brokers that have not reported, or are
        down, come last."""
        known = self._connections
        return sorted(names, key=lambda name: (name not in known, known.get(name, 0), name))


class LoadTalk:
    """Sends and receives the reports."""

    __slots__ = ("_due_ms", "_loads", "_name", "_own", "_send", "_told")

    def __init__(self, name: str, loads: Loads, own: Callable[[], int], send: Callable[[str, bytes], None]) -> None:
        self._name = name
        self._loads = loads
        self._own = own
        self._send = send
        self._told: dict[str, int] = {}
        self._due_ms = 0

    def tick(self, now_ms: int) -> None:
        if now_ms < self._due_ms:
            return
        self._due_ms = now_ms + TOLD_EVERY_MS
        connections = self._own()
        self._loads.note(self._name, connections)
        for name, told in self._told.items():
            if told != connections:
                self._told[name] = connections
                self._send(name, encode_load(ClientLoad(connections)))

    def connected(self, name: str) -> None:
        self._told[name] = -1

    def disconnected(self, name: str) -> None:
        self._told.pop(name, None)
        self._loads.forget(name)

    def received(self, name: str, data: bytes) -> None:
        """Raises BadLoadMessage."""
        load = decode_load(data)
        if load is not None and name in self._told:
            self._loads.note(name, load.connections)
