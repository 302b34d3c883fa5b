"""Streams of a cluster: readers on any broker, a root that dies, a broker that restarts."""

from __future__ import annotations

from typing import Any

import pika
import pytest

from pandomq.data_client.client import DataClient
from tests.integration.stream_reader import StreamReader, declare, fill
from tests.integration.waiting import wait_until

from .cluster import Cluster
from .process import ClusterBroker
from .test_proxy_failover import ProxiedPublisher

BEFORE, AFTER = 100, 100


def row(broker: ClusterBroker, stream: str) -> dict[str, Any]:
    """Returns the properties of the broker's own replica."""
    answer = broker.ask(f"queues/%2F/{stream}")
    if answer is None or answer.status_code != 200:
        return {}
    found = answer.json()
    kept = ("messages", "first_offset", "committed_offset", "segments", "message_bytes", "first_timestamp")
    return {name: found.get(name) for name in kept}


def wait_until_equal(cluster: Cluster, stream: str, committed_offset: int) -> None:
    def equal() -> bool:
        rows = [row(broker, stream) for broker in cluster if broker.alive]
        return rows[0].get("committed_offset") == committed_offset and all(found == rows[0] for found in rows)

    wait_until(equal, f"offset {committed_offset} of {stream} on every broker")


def chunks(broker: ClusterBroker, stream: str) -> list[bytes]:
    """Returns the chunks of the broker's own replica."""
    with DataClient(broker.url) as client:
        found = client.range(stream)
        return [bytes(each.chunk) for each in client.chunks(stream, found.first_offset, found.end_offset)]


@pytest.mark.proves("R26", "R28")
@pytest.mark.timeout(180)
def test_a_stream_outlives_its_root(proxies: Cluster) -> None:
    root = proxies.root
    one, other = proxies.backups
    connection = pika.BlockingConnection(other.parameters())
    arguments = {"x-stream-max-segment-size-bytes": 2_000}
    declare(connection.channel(), "readings", **arguments)
    reader = StreamReader(connection.channel(), "readings", "next", prefetch=20)
    publisher = ProxiedPublisher(one, "readings", {"x-queue-type": "stream", **arguments})
    try:
        reader.wait_for(BEFORE)
        root.kill()
        proxies.wait_for_root(other_than=root)
        count = len(publisher.confirmed)
        reader.wait_for(count + AFTER)
    finally:
        publisher.end()
    assert publisher.failure is None
    count = len(publisher.confirmed)
    reader.wait_for(count)
    # Each once, in order, on the same connection: the reader itself checks offsets.
    assert reader.numbers == list(range(count))
    root.start()
    proxies.wait_until_whole()
    wait_until_equal(proxies, "readings", count - 1)
    replicas = [chunks(broker, "readings") for broker in proxies]
    assert len(replicas[0]) > 1
    assert all(replica == replicas[0] for replica in replicas)
    again = pika.BlockingConnection(root.parameters())
    assert StreamReader(again.channel(), "readings", "first").read_to(count) == list(range(count))
    for each in (connection, again):
        each.close()


@pytest.mark.proves("R18")
@pytest.mark.timeout(180)
def test_a_broker_that_was_away_for_long_gets_the_stream(proxies: Cluster) -> None:
    away = proxies.backups[0]
    away.kill()
    connection = pika.BlockingConnection(proxies.root.parameters())
    channel = connection.channel()
    declare(channel, "long", **{"x-max-length-bytes": 400_000, "x-stream-max-segment-size-bytes": 50_000})
    fill(channel, "long", 0, 600, 2000)
    away.start()
    proxies.wait_until_whole()
    wait_until_equal(proxies, "long", 599)
    assert chunks(away, "long") == chunks(proxies.root, "long")
    reader = StreamReader(pika.BlockingConnection(away.parameters()).channel(), "long", "first")
    reader.wait_for(600)
    assert reader.offsets == reader.numbers == list(range(reader.offsets[0], 600))
    assert 0 < reader.offsets[0] == row(away, "long")["first_offset"]
    connection.close()
