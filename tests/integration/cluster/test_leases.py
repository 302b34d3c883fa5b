"""Leases in a cluster: read on every primary, kept and ended by the next root when the first one is killed."""

from __future__ import annotations

from typing import Final

import pytest

from pandomq.data_client.client import DataClient
from pandomq.data_client.failures import DataFailure
from pandomq.data_client.records import LeasedRange
from tests.integration.data_rows import numbers, rows_of
from tests.integration.numbered_queue import fill_queue, take_all

from .cluster import Cluster
from .process import ClusterBroker

MESSAGES = 300
WISH: Final = {"messages_max": 50, "bytes_max": 2**30}


def url_of(*brokers: ClusterBroker) -> str:
    return ",".join(broker.url for broker in brokers)


def read(client: DataClient, lease: LeasedRange) -> list[int]:
    return numbers(rows_of(client.chunks(lease.stream, lease.first_offset, lease.end_offset)))


def test_every_primary_gives_the_same(proxies: Cluster) -> None:
    fill_queue(proxies.root.parameters(), "shared", 0, 50)
    with DataClient(url_of(proxies.backups[0])) as client:
        lease = client.lease("shared", "job", timeout_ms=600_000, **WISH)
        assert lease.end_offset - lease.first_offset == 50
    for broker in proxies:
        with DataClient(url_of(broker)) as client:
            # A backup may know of it a moment later; its client waits for that.
            assert read(client, lease) == list(range(50))
    with DataClient(url_of(proxies.backups[1])) as client:
        client.release("shared", "job", lease.first_offset + 20)
        client.end_lease("shared", "job")
    assert take_all(proxies.root.parameters(), "shared", 30) == [(number, True) for number in range(20, 50)]


@pytest.mark.proves("S1")
@pytest.mark.timeout(240)
def test_the_root_is_killed_while_a_queue_is_worked_off_by_leases(proxies: Cluster) -> None:
    """Each message is released once: read in a range, which is read again after the kill, and then released."""
    fill_queue(proxies.root.parameters(), "work", 0, MESSAGES)
    root = proxies.root
    ledger: list[int] = []
    killed = False
    with DataClient(url_of(*proxies), timeout_s=120.0) as client:
        while len(ledger) < MESSAGES:
            lease = client.lease("work", "job", timeout_ms=120_000, **WISH)
            first = read(client, lease)
            if len(ledger) >= MESSAGES // 3 and not killed:
                root.kill()
                killed = True
                again = client.lease("work", "job", timeout_ms=120_000, **WISH)
                assert (again.first_offset, again.end_offset) == (lease.first_offset, lease.end_offset)
            assert read(client, lease) == first, "the same range has the same rows"
            client.release("work", "job", lease.end_offset)
            ledger += first
        assert killed
        lease = client.lease("work", "job", timeout_ms=120_000, **WISH)
        assert lease.first_offset == lease.end_offset
        client.end_lease("work", "job")
    assert ledger == list(range(MESSAGES)), "every message once, in order"
    assert take_all(proxies.root.parameters(), "work", 0) == []
    root.start()
    proxies.wait_until_whole()


@pytest.mark.timeout(240)
def test_a_hand_over_in_the_middle_of_a_lease(proxies: Cluster) -> None:
    fill_queue(proxies.root.parameters(), "handed", 0, 30)
    with DataClient(url_of(*proxies), timeout_s=120.0) as client:
        lease = client.lease("handed", "job", timeout_ms=120_000, messages_max=20, bytes_max=2**20)
        root, successor = proxies.root, proxies.backups[0]
        root.ask("cluster/promote", "POST", {"name": successor.name})
        proxies.wait_for_root(other_than=root)
        again = client.lease("handed", "job", timeout_ms=120_000, messages_max=20, bytes_max=2**20)
        assert (again.first_offset, again.end_offset) == (lease.first_offset, lease.end_offset)
        assert read(client, again) == list(range(20))
        client.release("handed", "job", lease.first_offset + 15)
        client.end_lease("handed", "job")
    found = take_all(proxies.root.parameters(), "handed", 15, 60.0)
    assert found == [(number, number < 20) for number in range(15, 30)], "nobody but the lease had any"
    proxies.wait_until_whole()


@pytest.mark.timeout(240)
def test_the_next_root_ends_an_unused_lease(proxies: Cluster) -> None:
    fill_queue(proxies.root.parameters(), "left", 0, 40)
    root = proxies.root
    with DataClient(url_of(*proxies), timeout_s=120.0) as client:
        lease = client.lease("left", "job", timeout_ms=5_000, messages_max=25, bytes_max=2**20)
        client.release("left", "job", lease.first_offset + 5)
        root.kill()
        proxies.wait_for_root(other_than=root)
        found = take_all(proxies.root.parameters(), "left", 35, 60.0)
        assert sorted(number for number, _ in found) == list(range(5, 40))
        assert all(redelivered for _, redelivered in found)
        with pytest.raises(DataFailure):
            client.release("left", "job", lease.end_offset)
    root.start()
    proxies.wait_until_whole()
