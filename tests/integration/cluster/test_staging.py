"""Batches that are staged and committed over the data port while roots die: each is there once, whole and in order."""

from __future__ import annotations

import threading

import pika
import pytest

from pandomq.data_client.client import DataClient
from tests.unit.broker.staging_scene import frames

from .cluster import Cluster

QUEUE = "staged"
ROWS, PARTS, PARTITIONS = 200, 3, 2


def bodies_of(batch: int, partition: int, part: int) -> list[str]:
    return [f"{batch} {partition} {part} {row}" for row in range(ROWS)]


def run_batch(client: DataClient, batch: int, attempt: str) -> None:
    """Stages and commits as a driver with its tasks does."""
    for partition in range(PARTITIONS):
        for part in range(PARTS):
            octets = frames(*bodies_of(batch, partition, part), key=QUEUE)
            client.stage("q1", batch, partition, attempt, part, octets)
    client.commit("q1", batch, [(partition, attempt, PARTS) for partition in range(PARTITIONS)])


@pytest.mark.proves("S2", "R28")
@pytest.mark.timeout(180)
def test_roots_die_and_each_batch_is_there_once(proxies: Cluster) -> None:
    root = proxies.root
    setup = pika.BlockingConnection(root.parameters())
    setup.channel().queue_declare(QUEUE, durable=True)
    setup.close()
    url = ",".join(broker.url for broker in proxies)
    failures: list[BaseException] = []
    batches = 6

    def run() -> None:
        try:
            with DataClient(url) as client:
                assert client.last_batch("q1") == -1
                for batch in range(batches):
                    run_batch(client, batch, "first")
                    # A client without an answer in time repeats its request.
                    run_batch(client, batch, "second")
                assert client.last_batch("q1") == batches - 1
        except BaseException as failure:
            failures.append(failure)
            raise

    driver = threading.Thread(target=run)
    driver.start()
    driver.join(1.0)
    root.kill()
    try:
        proxies.wait_for_root(other_than=root)
        driver.join(120)
        assert not driver.is_alive()
        assert failures == []
    finally:
        root.launch()
        proxies.wait_until_whole()
    connection = pika.BlockingConnection(proxies.root.parameters())
    channel = connection.channel()
    wanted = [
        body.encode()
        for batch in range(batches)
        for partition in range(PARTITIONS)
        for part in range(PARTS)
        for body in bodies_of(batch, partition, part)
    ]
    got = []
    for _ in range(channel.queue_declare(QUEUE, passive=True).method.message_count):
        got.append(next(channel.consume(QUEUE, auto_ack=True))[2])
    channel.queue_delete(QUEUE)
    connection.close()
    assert got == wanted
