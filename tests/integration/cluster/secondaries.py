"""Secondaries of a cluster: brokers that join by the addresses of its primaries, and leave again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tests.integration.waiting import wait_until
from tests.support.ports import free_ports

from .cluster import AMQP_PORT, HTTP_PORT, PATIENCE_S, Cluster
from .process import ClusterBroker


class Secondary(ClusterBroker):
    def __init__(self, cluster: Cluster, name: str, *, join: list[str] | None = None) -> None:
        """`join`: the addresses at which it looks for the cluster; those of all primaries by default."""
        network = cluster.network
        if network is None:
            port, http_port = free_ports(2)
            super().__init__(name, cluster.directory / name, "127.0.0.1", port, http_port)
        else:
            place = network.hosts[name], AMQP_PORT, HTTP_PORT
            super().__init__(name, cluster.directory / name, *place, network.prefix(name))
        self.cluster = cluster
        addresses = join if join is not None else [broker.address for broker in cluster]
        shared = {key: value for key, value in cluster.brokers["n1"].sections["cluster"].items() if key != "primaries"}
        self.configure({"cluster": {**shared, "join": addresses}})

    def wait_until_in_step(self) -> None:
        """Waits until the root reports that it has everything, and it is linked to all primaries."""

        def in_step() -> bool:
            own = self.cluster.members().get(self.name, {})
            return own.get("role") == "secondary" and own.get("in_sync") is True and self.linked_to == self._alive

        wait_until(in_step, f"{self.name} in step\n{self.tail}", PATIENCE_S)

    @property
    def _alive(self) -> set[str]:
        return {broker.name for broker in self.cluster if broker.alive}

    @property
    def linked_to(self) -> set[str]:
        links: list[dict[str, Any]] = self.status.get("links", [])
        return {link["name"] for link in links if link["linked"]}

    def wait_until_forgotten(self) -> None:
        def forgotten() -> bool:
            seen = [broker.status for broker in self.cluster if broker.alive]
            named = [one["name"] for status in seen for one in (*status["members"], *status["links"])]
            return self.name not in named

        wait_until(forgotten, f"nobody to know {self.name}", PATIENCE_S)

    def has_queue(self, name: str) -> bool:
        answer = self.ask(f"queues/%2F/{name}")
        return answer is not None and answer.status_code == 200

    @property
    def size_bytes(self) -> int:
        return sum(file.stat().st_blocks * 512 for file in self.data.rglob("*") if file.is_file())


@contextlib.contextmanager
def joined(cluster: Cluster, *names: str) -> Iterator[list[Secondary]]:
    """Yields these once they are in step; ends them afterwards if they still run."""
    secondaries = [Secondary(cluster, name) for name in names]
    try:
        for secondary in secondaries:
            secondary.launch()
        for secondary in secondaries:
            secondary.wait_until_in_step()
        yield secondaries
        for secondary in secondaries:
            secondary.check()
    finally:
        for secondary in secondaries:
            secondary.end()
