"""Brokers that form a cluster: on loopback, or each in a network namespace of its own."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pika

from tests.integration.waiting import wait_until
from tests.support.ports import free_ports

from .network import Network
from .process import ClusterBroker

PATIENCE_S = 60.0
"""The time for something that usually takes a second: the machine may be busy with other processes."""
ROOT_LINE = re.compile(r"is now the root \((?P<term>.*?)\)")
"""The line that a broker logs when it is elected."""
AMQP_PORT, HTTP_PORT = 5672, 15672
"""In a namespace of its own a broker need not look for free ports."""


def write_key(path: Path, key: str | None = None) -> Path:
    path.write_text(key or secrets.token_hex(32))
    path.chmod(0o600)
    return path


ROLES = ("root", "backup")


class Cluster:
    def __init__(
        self,
        directory: Path,
        size: int = 3,
        network: Network | None = None,
        sections: Mapping[str, Mapping[str, object]] | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.network = network
        names = [f"n{number}" for number in range(1, size + 1)]
        self.key_file = write_key(directory / "key")
        ports = [] if network else free_ports(2 * size)
        self.brokers: dict[str, ClusterBroker] = {}
        for place, name in enumerate(names):
            if network is None:
                self.brokers[name] = ClusterBroker(
                    name, directory / name, "127.0.0.1", ports[2 * place], ports[2 * place + 1]
                )
            else:
                self.brokers[name] = ClusterBroker(
                    name, directory / name, network.hosts[name], AMQP_PORT, HTTP_PORT, network.prefix(name)
                )
        for broker in self.brokers.values():
            broker.configure({"cluster": {"key_file": str(self.key_file), "primaries": self.primaries}})
            broker.configure(sections or {})

    @property
    def primaries(self) -> list[str]:
        return [f"{broker.name}={broker.address}" for broker in self.brokers.values()]

    def __iter__(self) -> Iterator[ClusterBroker]:
        return iter(self.brokers.values())

    def __getitem__(self, name: str) -> ClusterBroker:
        return self.brokers[name]

    # Start and stop.

    def start(self) -> None:
        """Returns once a root serves and all others follow it."""
        for broker in self:
            if not broker.alive:
                broker.launch()
        self.wait_until_whole()

    def end(self) -> None:
        for broker in self:
            broker.end()

    def check(self) -> None:
        """Checks that there was no unhandled exception, and no term with two roots."""
        roots: dict[str, str] = {}
        for broker in self:
            broker.check()
            for line in broker.lines(ROOT_LINE.pattern):
                found = ROOT_LINE.search(line)
                assert found is not None
                other = roots.setdefault(found["term"], broker.name)
                assert other == broker.name, f"{other} and {broker.name} were root in {found['term']}"

    # Roles.

    @property
    def root(self) -> ClusterBroker:
        """The root; waits for it if there is none at the moment."""
        return self.wait_for_root()

    @property
    def backups(self) -> list[ClusterBroker]:
        root = self.root
        return [broker for broker in self if broker is not root]

    def find_root(self) -> ClusterBroker | None:
        serving = [broker for broker in self if broker.serves]
        return serving[0] if len(serving) == 1 else None

    def wait_for_root(self, *, other_than: ClusterBroker | None = None) -> ClusterBroker:
        found: list[ClusterBroker] = []

        def there_is_one() -> bool:
            root = self.find_root()
            found[:] = [root] if root is not None and root is not other_than else []
            return bool(found)

        self._wait(there_is_one, "a root" if other_than is None else f"a root other than {other_than.name}")
        return found[0]

    def members(self) -> dict[str, dict[str, Any]]:
        """The members in the root's view."""
        root = self.find_root()
        status = root.status if root is not None else {}
        return {member["name"]: member for member in status.get("members", [])}

    def make_whole(self) -> None:
        """Starts the members that others have stopped."""
        for broker in self:
            if not broker.alive:
                broker.launch()
        self.wait_until_whole()

    def wait_until_whole(self, count: int | None = None) -> None:
        """Waits until a root serves, and all (or so many) primaries have its log. They must report that themselves,
        too: the root may not have noticed yet that a broker has restarted."""
        wanted = len(self.brokers) if count is None else count

        def is_whole(member: dict[str, Any]) -> bool:
            if not member["in_sync"] or member["role"] not in ROLES:
                return False
            broker = self.brokers.get(member["name"])
            return broker is None or broker.unreachable or broker.status.get("role") in ROLES

        def whole() -> bool:
            return sum(map(is_whole, self.members().values())) >= wanted

        self._wait(whole, f"{wanted} brokers in sync")

    def wait_for_role(self, name: str, *roles: str) -> None:
        self._wait(lambda: self.members().get(name, {}).get("role") in roles, f"{name} as {' or '.join(roles)}")

    def wait_until_in_sync(self, name: str) -> None:
        self._wait(lambda: self.members().get(name, {}).get("in_sync") is True, f"{name} in sync")

    def _wait(self, condition: Any, what: str) -> None:
        try:
            wait_until(condition, what, PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story()}") from None

    def story(self) -> str:
        """Returns the last lines of each log, for a reader of a failure."""
        parts = []
        for broker in self:
            state = "alive" if broker.alive else "ended"
            parts.append(f"--- {broker.name}, {state}, sees {broker.status or 'nothing'}\n{broker.tail}")
        return "\n".join(parts)

    # Clients.

    def connect(self, **more: Any) -> pika.BlockingConnection:
        """Connects a client that knows all addresses, to the first that accepts it."""
        return pika.BlockingConnection([broker.parameters(**more) for broker in self])

    @property
    def urls(self) -> list[str]:
        return [broker.url for broker in self]


@contextlib.contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    """Ends the brokers in any case; requires that none logged an exception if nothing else failed."""
    try:
        cluster.start()
        yield cluster
        cluster.check()
    finally:
        cluster.end()
