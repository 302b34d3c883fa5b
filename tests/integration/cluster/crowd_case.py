"""Subscribers on every broker, two of them secondaries; a secondary is killed, then the root: subscribers of other
brokers do not notice."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tests.integration.waiting import wait_until
from tests.support.ports import free_ports

from .cluster import Cluster, running
from .crowd import Crowd, Publisher
from .process import ClusterBroker

PATIENCE_S = 180.0
MESSAGES = 20
"""The number of messages before, between and after the faults."""


def make_secondaries(cluster: Cluster, count: int) -> list[ClusterBroker]:
    ports = free_ports(2 * count)
    found = []
    for place in range(count):
        name = f"s{place + 1}"
        broker = ClusterBroker(name, cluster.directory / name, "127.0.0.1", ports[2 * place], ports[2 * place + 1])
        joins = [primary.address for primary in cluster]
        broker.configure({"cluster": {"key_file": str(cluster.key_file), "join": joins, "access": "proxy"}})
        found.append(broker)
    return found


def takes_clients(broker: ClusterBroker) -> bool:
    answer = broker.ask("health/clients")
    return answer is not None and answer.status_code == 200


def crowd(directory: Path, subscribers: int = 10_000) -> dict[str, Any]:
    """One root, one backup, two secondaries. Every confirmed message is received once wherever a broker survives."""
    cluster = Cluster(directory, size=2, sections={"cluster": {"access": "proxy"}})
    secondaries = make_secondaries(cluster, 2)
    with running(cluster):
        people = Crowd()
        try:
            for secondary in secondaries:
                secondary.start()
            for broker in (*cluster, *secondaries):
                wait_until(partial(takes_clients, broker), f"{broker.name} serves clients", PATIENCE_S)
            return _story(cluster, secondaries, people, subscribers)
        finally:
            people.close()
            for secondary in secondaries:
                secondary.end()


def _story(cluster: Cluster, secondaries: list[ClusterBroker], people: Crowd, subscribers: int) -> dict[str, Any]:
    root, backup = cluster.root, cluster.backups[0]
    doomed, lasting = secondaries
    publisher = Publisher(lasting)
    begun_s = time.monotonic()
    people.subscribe([root, backup, doomed, lasting], subscribers, PATIENCE_S)
    subscribed_s = time.monotonic() - begun_s
    publisher.start()
    publisher.wait_for(MESSAGES, PATIENCE_S)
    doomed.kill()
    publisher.wait_for(MESSAGES, PATIENCE_S)
    root.kill()
    # Exactly half of the primaries are left: an operator reports the other one as dead.
    answer = backup.ask("cluster/promote", "POST", {"name": backup.name, "force": True, "dead": [root.name]})
    assert answer is not None and answer.status_code < 300, answer
    publisher.wait_for(MESSAGES, PATIENCE_S)
    publisher.stop(PATIENCE_S)
    survivors, confirmed = [backup, lasting], set(range(publisher.confirmed_count))
    people.wait_for(survivors, confirmed, PATIENCE_S)
    people.check(survivors, confirmed)
    memory_mib = {broker.name: psutil.Process(broker.pid).memory_info().rss >> 20 for broker in survivors}
    for broker in survivors:
        broker.check()
    return {
        "subscribers": subscribers,
        "subscribed_s": round(subscribed_s, 2),
        "confirmed": len(confirmed),
        "memory_mib": memory_mib,
    }
