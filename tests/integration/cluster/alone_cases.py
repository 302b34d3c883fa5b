"""Cases that need a cluster to themselves: two brokers, foreign brokers, and Celery. Each returns an account."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.integration.waiting import wait_until

from .account import Account
from .celery_load import CeleryLoad
from .cluster import PATIENCE_S, ROOT_LINE, Cluster, running, write_key
from .crowd_case import crowd
from .disks import wipe
from .load import Load, at_work
from .network_cases import SILENCE_S
from .process import PASSWORD, USER, ClusterBroker
from .storm import Storm

STORM_CLIENTS = 10_000
STORM_PATIENCE_S = 180.0
STORM_MEMORY_BYTES = 1024 * 1024 * 1024
"""A tenth of a megabyte for each of them, and the broker itself."""
CaseAlone = Callable[[Path], dict[str, Any]]


def promoted_survivor(directory: Path) -> dict[str, Any]:
    """Of two brokers the root is lost for good: no broker takes over until an operator promotes one. Nothing confirmed
    is lost."""
    account = Account()
    with running(Cluster(directory, size=2)) as cluster, at_work(Load(cluster, account, "two")) as load:
        dead, survivor = cluster.root, cluster.backups[0]
        dead.kill()
        time.sleep(SILENCE_S)
        assert not survivor.serves, "exactly half may not elect"
        answer = survivor.ask("cluster/promote", "POST", {"name": survivor.name, "force": True, "dead": [dead.name]})
        assert answer is not None and answer.status_code < 300, answer
        assert cluster.wait_for_root() is survivor
        load.wait_for_progress()
        dead.start()
        cluster.wait_for_role(dead.name, "learner")
    assert account.broken == [], account.broken
    return account.summary()


def stopped_root_of_two(directory: Path) -> dict[str, Any]:
    """Of two brokers the root is asked to end: it stays until the other one is root, and that one stays root."""
    account = Account()
    with running(Cluster(directory, size=2)) as cluster, at_work(Load(cluster, account, "two")) as load:
        for _ in range(2):
            root, heir = cluster.root, cluster.backups[0]
            mark = heir.mark()
            root.stop()
            assert heir.lines(f"{heir.name} is now the root", mark), "it left before there was another"
            assert heir.serves, heir.tail
            root.start()
            cluster.wait_until_whole()
            load.wait_for_progress()
            assert cluster.root is heir
    assert account.broken == [], account.broken
    return account.summary()


def each_of_two_returns(directory: Path) -> dict[str, Any]:
    """With one of two gone nothing is confirmed; when it is back all clients continue by themselves."""
    account = Account()
    with running(Cluster(directory, size=2)) as cluster, at_work(Load(cluster, account, "two")) as load:
        for broker in (cluster.root, cluster.backups[0]):
            broker.kill()
            time.sleep(SILENCE_S / 2)
            before = load.confirmed()
            time.sleep(SILENCE_S / 2)
            assert load.confirmed() == before, "confirmed with one copy"
            broker.start()
            cluster.wait_until_whole()
            load.wait_for_progress()
    assert account.broken == [], account.broken
    return account.summary()


def wrong_key(directory: Path) -> dict[str, Any]:
    """A broker with another key is refused, both sides log it, and the others continue."""
    with running(Cluster(directory)) as own:
        stranger = own.backups[0]
        stranger.stop()
        marks = {broker.name: broker.mark() for broker in own}
        stranger.configure({"cluster": {"key_file": str(write_key(directory / "other-key"))}})
        stranger.start()
        stranger.wait_for_line("(?i)key", marks[stranger.name])
        own.root.wait_for_line(f"(?i){stranger.name}.*key|key.*{stranger.name}", marks[own.root.name])
        publish(own)
        assert not stranger.serves
        assert own.members()[stranger.name]["role"] == "absent"
        stranger.stop()
        stranger.configure({"cluster": {"key_file": str(own.key_file)}})
        stranger.start()
        own.wait_until_whole()
    return {}


def foreign_store(directory: Path) -> dict[str, Any]:
    """A broker with the store of another cluster is refused, although it has the key."""
    with running(Cluster(directory / "own")) as own, running(Cluster(directory / "other")) as other:
        publish(other)
        other["n3"].stop()
        broker = own["n3"]
        broker.stop()
        kept = broker.data.with_name("kept")
        broker.data.rename(kept)
        shutil.copytree(other["n3"].data, broker.data)
        mark = broker.mark()
        broker.launch()
        broker.wait_for_line("belongs to cluster .* to cluster", mark)
        publish(own)
        assert not broker.serves
        assert own.members()["n3"]["role"] == "absent"
        broker.end()
        wipe(broker.data)
        broker.data.rmdir()
        kept.rename(broker.data)
        broker.start()
        own.wait_until_whole()
    return {}


def celery_through_a_failover(directory: Path) -> dict[str, Any]:
    """Worker and sender know all addresses; the root is killed; every accepted task runs."""
    with running(Cluster(directory)) as cluster:
        load = CeleryLoad(cluster, directory, "celery")
        try:
            load.start()
            root = cluster.root
            root.kill()
            cluster.wait_for_root(other_than=root)
            load.wait_for_progress()
            root.start()
            cluster.wait_until_whole()
            load.finish()
        finally:
            load.stop()
    pauses = {"celery": round(load.longest_pause_s, 3)}
    return {"accepted": len(load.accepted), "errors": load.errors, "longest_pause_s": pauses}


def reconnect_storm(
    directory: Path, clients: int = STORM_CLIENTS, lease_ms: int = 1_000, access: str = "redirect"
) -> dict[str, Any]:
    """Ten thousand clients of a root that is killed: all of them reconnect to its successor, which remains root and
    keeps its size."""
    # If only the root serves, all of them lose it, and all connect to one broker.
    sections = {"cluster": {"lease_ms": lease_ms, "access": access}}
    with running(Cluster(directory, sections=sections)) as cluster:
        storm = Storm(cluster, clients)
        elected = elections(cluster)
        try:
            storm.start()
            first_s, _ = storm.wait_for_all(STORM_PATIENCE_S)
            root = cluster.root
            assert elections(cluster) == elected, "they cost a root its office when they came"
            wait_until(lambda: sum(connections(root).values()) == clients, "its view of all of them", PATIENCE_S)
            lost = connections(root)[root.name]
            storm.forget()
            losses = storm.losses + lost
            root.kill()
            heir = cluster.wait_for_root(other_than=root)
            again_s, stall_s = storm.wait_for_all(STORM_PATIENCE_S, losses)
            process = psutil.Process(heir.pid)
            memory_bytes, cpu = process.memory_info().rss, process.cpu_times()
            assert memory_bytes < STORM_MEMORY_BYTES, f"{heir.name} takes {memory_bytes} bytes"
            assert elections(cluster) == elected + 1 and cluster.root is heir, "they cost a root its office"
            longest_pass_s = metric(heir, "pandomq_loop_pass_seconds_max")
            publish(cluster)
        finally:
            storm.stop()
        root.start()
        cluster.wait_until_whole()
    return {
        "clients": clients,
        "lost": lost,
        "refusals": storm.refusals,
        "first_s": round(first_s, 2),
        "again_s": round(again_s, 2),
        "longest_stall_s": round(stall_s, 2),
        "longest_outside_s": round(storm.longest_outside_s, 2),
        "longest_pass_s": longest_pass_s,
        "heir_cpu_s": round(cpu.user + cpu.system, 2),
        "memory_mib": memory_bytes >> 20,
    }


def storm_of_proxied(directory: Path, clients: int = STORM_CLIENTS, lease_ms: int = 1_000) -> dict[str, Any]:
    """The same where any broker serves: a third of the clients lose their broker, which was the root, and the others
    accept them while they elect another root."""
    account = reconnect_storm(directory, clients, lease_ms, access="proxy")
    assert 0 < account["lost"] < clients and not account["refusals"], account
    return account


def connections(broker: ClusterBroker) -> dict[str, int]:
    """Returns the connections of all brokers, as far as this one knows."""
    return {member["name"]: member["connections"] or 0 for member in broker.status.get("members", [])}


def elections(cluster: Cluster) -> int:
    """Returns the number of elections with a winner."""
    return sum(len(broker.lines(ROOT_LINE.pattern)) for broker in cluster)


def metric(broker: ClusterBroker, name: str) -> float:
    text = httpx.get(f"{broker.http_url}/metrics", auth=(USER, PASSWORD), timeout=30).text
    return next(float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"{name} "))


def publish(cluster: Cluster, count: int = 10) -> None:
    """The cluster works: all messages are confirmed."""
    connection = cluster.connect()
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True)
    for number in range(count):
        channel.basic_publish("", "q", b"%d" % number)
    connection.close()


CASES_ALONE: list[CaseAlone] = [
    promoted_survivor,
    stopped_root_of_two,
    each_of_two_returns,
    wrong_key,
    foreign_store,
    celery_through_a_failover,
    crowd,
]
CASES_ON_REQUEST: list[CaseAlone] = [reconnect_storm, storm_of_proxied]
"""They take minutes, and most of a machine."""
