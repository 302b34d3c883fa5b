"""The data ports of a cluster: all serve the same rows, and reading continues when a broker dies."""

from __future__ import annotations

import pika
import pytest

from pandomq.data_client import patience
from pandomq.data_client.client import DataClient
from tests.integration.data_rows import numbers, read_all, rows_of
from tests.integration.stream_reader import declare, fill
from tests.integration.waiting import wait_until

from .cluster import Cluster
from .process import ClusterBroker

MESSAGES, SIZE = 400, 10_000


@pytest.fixture(scope="module")
def read_from(shared_proxies: Cluster) -> Cluster:
    shared_proxies.make_whole()
    with pika.BlockingConnection(shared_proxies.root.parameters()) as connection:
        channel = connection.channel()
        declare(channel, "bulk")
        fill(channel, "bulk", 0, MESSAGES, SIZE)
    return shared_proxies


def url_of(*brokers: ClusterBroker) -> str:
    return ",".join(broker.url for broker in brokers)


def end_at(broker: ClusterBroker) -> int:
    with DataClient(url_of(broker)) as client:
        return client.range("bulk").end_offset


def wait_for_all(broker: ClusterBroker) -> None:
    wait_until(lambda: end_at(broker) == MESSAGES, f"all of the stream on {broker.name}")


def test_every_primary_has_the_same_chunks(read_from: Cluster) -> None:
    found = []
    for broker in read_from:
        wait_for_all(broker)
        with DataClient(url_of(broker)) as client:
            sealed = client.index("bulk", 0, MESSAGES)[:-1]
            found.append([bytes(one.chunk) for one in client.chunks("bulk", 0, sealed[-1].last_offset + 1)])
            assert numbers(read_all(client, "bulk")) == list(range(MESSAGES))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 2


def test_requests_that_only_the_root_handles_succeed_from_any_broker(read_from: Cluster) -> None:
    for place, broker in enumerate(read_from):
        with DataClient(url_of(broker)) as client:
            client.store_offset("bulk", broker.name, place)
    with DataClient(url_of(read_from.root)) as client:
        assert client.stored_offsets("bulk") == {"n1": 0, "n2": 1, "n3": 2}


@pytest.mark.timeout(180)
def test_reading_and_storing_go_on_after_a_hand_over(read_from: Cluster) -> None:
    root, heir = read_from.root, read_from.backups[0]
    with DataClient(url_of(root), timeout_s=90.0) as client:
        reader = client.chunks("bulk", 0, MESSAGES, bytes_max=1)
        slices = [next(reader)]
        client.store_offset("bulk", "handed over", 1)
        answer = root.ask("cluster/promote", "POST", {"name": heir.name})
        assert answer is not None and answer.is_success, answer
        # The old root restarts in the same process, and closes all its clients' connections.
        assert read_from.wait_for_root(other_than=root) is heir
        slices += reader
        assert numbers(rows_of(slices)) == list(range(MESSAGES))
        client.store_offset("bulk", "handed over", 2)
        with client.at_root() as at_root:
            assert at_root.stored_offsets("bulk")["handed over"] == 2
    read_from.wait_until_whole()


@pytest.mark.timeout(180)
def test_a_client_leaves_a_silent_broker(read_from: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "SILENCE_S_MAX", 1.0)
    frozen, others = read_from.backups[0], [broker for broker in read_from if broker is not read_from.backups[0]]
    with DataClient(url_of(frozen, *others), timeout_s=90.0) as client:
        reader = client.chunks("bulk", 0, MESSAGES, bytes_max=1)
        slices = [next(reader)]
        frozen.freeze()
        try:
            slices += reader
        finally:
            frozen.thaw()
        assert numbers(rows_of(slices)) == list(range(MESSAGES))
    read_from.wait_until_whole()


@pytest.mark.timeout(180)
def test_reading_and_storing_go_on_when_the_root_is_killed(read_from: Cluster) -> None:
    root = read_from.root
    # This client begins at the root, and knows only the brokers that the root names.
    with DataClient(url_of(root), timeout_s=90.0) as client:
        reader = client.chunks("bulk", 0, MESSAGES, bytes_max=1)
        slices = [next(reader)]
        client.store_offset("bulk", "before", 1)
        root.kill()
        slices += reader
        assert numbers(rows_of(slices)) == list(range(MESSAGES))
        client.store_offset("bulk", "after", 2)
        with client.at_root() as at_root:
            stored = at_root.stored_offsets("bulk")
        assert (stored["before"], stored["after"]) == (1, 2)
    root.start()
    read_from.wait_until_whole()
    wait_for_all(root)
    with DataClient(url_of(root)) as client:
        assert numbers(read_all(client, "bulk")) == list(range(MESSAGES))
