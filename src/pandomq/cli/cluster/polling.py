"""The state of the brokers, requested over HTTP from all at once."""

from __future__ import annotations

import http.client
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import msgspec

from pandomq.cli.api import Api
from pandomq.cli.cluster.plan import HOST, PlannedBroker
from pandomq.cli.failures import Failure

ASK_S_MAX: Final = 1.0
"""How long a broker may take to answer before it counts as silent."""
TEXT_BYTES_MAX: Final = 1024


class BrokerAnswers(msgspec.Struct, frozen=True):
    """One broker's answers."""

    cluster: dict[str, Any] | None
    readiness: str
    """Its answer to a load balancer; empty if there is none."""

    @property
    def role(self) -> str | None:
        return None if self.cluster is None else self.cluster.get("role")


class ClusterAnswers(msgspec.Struct, frozen=True):
    """The answers of all of them at a time."""

    by_broker: dict[str, BrokerAnswers]

    @property
    def root(self) -> str | None:
        """The broker that reports itself as root."""
        return next((name for name, answer in self.by_broker.items() if answer.role == "root"), None)

    @property
    def members(self) -> dict[str, dict[str, Any]]:
        """By name: each broker's own report, and the root's report of who is in sync."""
        found: dict[str, dict[str, Any]] = {}
        for name, answer in self.by_broker.items():
            own = _member(answer.cluster, name)
            if own is not None:
                found[name] = own
        root = self.root
        if root is not None:
            told = self.by_broker[root].cluster
            for name, own in found.items():
                seen = _member(told, name)
                if seen is not None:
                    found[name] = {**own, "in_sync": seen["in_sync"], "lag_bytes": seen["lag_bytes"]}
        return found

    @property
    def term(self) -> int:
        return max(
            (int(answer.cluster.get("term") or 0) for answer in self.by_broker.values() if answer.cluster), default=0
        )

    @property
    def cluster_id(self) -> str:
        ids = [str(answer.cluster.get("cluster")) for answer in self.by_broker.values() if answer.cluster]
        return ids[0] if ids else ""


def _member(cluster: dict[str, Any] | None, name: str) -> dict[str, Any] | None:
    members = [] if cluster is None else cluster.get("members") or []
    return next((member for member in members if member.get("name") == name), None)


class ClusterPoller:
    """Requests the states; a silent broker delays only its own."""

    def __init__(self, places: Sequence[PlannedBroker], key: bytes) -> None:
        self._places = list(places)
        self._apis = {place.name: Api(f"http://{place.http}", ASK_S_MAX, key) for place in places}
        self._threads = ThreadPoolExecutor(max_workers=len(self._places), thread_name_prefix="ask")

    def look(self) -> ClusterAnswers:
        return ClusterAnswers(dict(zip(self._apis, self._threads.map(self._ask, self._places), strict=True)))

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, place: PlannedBroker) -> BrokerAnswers:
        readiness = _readiness(place)
        if not readiness:
            return BrokerAnswers(None, "")
        try:
            return BrokerAnswers(self._apis[place.name].get("cluster"), readiness)
        except (Failure, msgspec.DecodeError):
            return BrokerAnswers(None, readiness)


def _readiness(place: PlannedBroker) -> str:
    connection = http.client.HTTPConnection(HOST, place.http_port, timeout=ASK_S_MAX)
    try:
        connection.request("GET", "/api/health/ready", headers={"Connection": "close"})
        with connection.getresponse() as response:
            return response.read(TEXT_BYTES_MAX).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
