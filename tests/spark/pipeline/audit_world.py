"""Logs and ledgers for audits, made by three real brokers of which the root is killed while clients continue."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pika
from pika.exceptions import AMQPError

from pandomq.ledger import Ledger
from tests.integration.cluster.cluster import Cluster, running

QUEUE = "orders"
MESSAGES = 240
PERSISTENT = 2
PATIENCE_S = 60.0
SMALL_FILES: Mapping[str, Mapping[str, object]] = {
    "log": {"segment_bytes": "16KiB", "snapshot_bytes": "64KiB", "retain_for_audit_bytes": "64MiB"},
    "cluster": {"access": "redirect"},
}


@dataclass(frozen=True)
class World:
    stores: tuple[Path, ...]
    ledgers: tuple[Path, ...]

    def copy(self, target: Path) -> World:
        """Copies the world, to plant something in the copy."""
        stores = [shutil.copytree(store, target / store.parent.name / "data") for store in self.stores]
        ledgers = [Path(shutil.copy(ledger, target / ledger.name)) for ledger in self.ledgers]
        return World(tuple(stores), tuple(ledgers))

    @property
    def publisher(self) -> Path:
        return self.ledgers[0]

    @property
    def consumer(self) -> Path:
        return self.ledgers[1]


def make_world(directory: Path) -> World:
    cluster = Cluster(directory, sections=SMALL_FILES)
    ledgers = (directory / "publisher.jsonl", directory / "consumer.jsonl")
    with running(cluster):
        first = cluster.root
        with contextlib.closing(cluster.connect()) as connection:
            channel = connection.channel()
            channel.queue_declare(QUEUE, durable=True)
            channel.queue_declare("kept", durable=True)
            channel.exchange_declare("events", "topic", durable=True)
            channel.queue_bind("kept", "events", "e.#")
        half = MESSAGES // 2
        publish(cluster, ledgers[0], range(half))
        consume(cluster, ledgers[1], half // 2)
        first.kill()
        cluster.wait_for_root(other_than=first)
        publish(cluster, ledgers[0], range(half, MESSAGES))
        first.launch()
        cluster.wait_until_whole()
        consume(cluster, ledgers[1], half // 2)
        for broker in cluster:
            broker.terminate()
        for broker in cluster:
            broker.wait_for_end()
    return World(tuple(broker.data for broker in cluster), ledgers)


def publish(cluster: Cluster, path: Path, numbers: range) -> None:
    """Publishes with confirms, to a queue and through an exchange in turn; repeats unconfirmed messages."""
    with Ledger(path) as ledger:
        left = list(numbers)
        deadline_s = time.monotonic() + PATIENCE_S
        while left:
            assert time.monotonic() < deadline_s, "publishers do not get through"
            try:
                with contextlib.closing(cluster.connect()) as connection:
                    channel = connection.channel()
                    channel.confirm_delivery()
                    while left:
                        message = f"m{left[0]}"
                        exchange, key = ("events", "e.x") if left[0] % 3 == 0 else ("", QUEUE)
                        properties = pika.BasicProperties(delivery_mode=PERSISTENT, message_id=message)
                        ledger.published(message, exchange=exchange, routing_key=key)
                        channel.basic_publish(exchange, key, b"body of %d" % left[0] * 20, properties)
                        ledger.confirmed(message, exchange=exchange, routing_key=key)
                        del left[0]
            except (AMQPError, OSError):
                time.sleep(0.2)


def consume(cluster: Cluster, path: Path, count: int) -> None:
    """Consumes so many; reconnects if the root changes meanwhile."""
    deadline_s = time.monotonic() + PATIENCE_S
    taken: set[str] = set()
    while len(taken) < count:
        assert time.monotonic() < deadline_s, "consumers do not get through"
        try:
            _consume_some(cluster, path, count, taken)
        except (AMQPError, OSError):
            time.sleep(0.2)


def _consume_some(cluster: Cluster, path: Path, count: int, taken: set[str]) -> None:
    with Ledger(path) as ledger, contextlib.closing(cluster.connect()) as connection:
        channel = connection.channel()
        channel.basic_qos(prefetch_count=10)
        for method, properties, _ in channel.consume(QUEUE, inactivity_timeout=PATIENCE_S):
            assert method is not None, "nothing more comes"
            ledger.delivered(QUEUE, properties.message_id, redelivered=method.redelivered)
            ledger.acked(QUEUE, properties.message_id)
            channel.basic_ack(method.delivery_tag)
            taken.add(properties.message_id)
            if len(taken) == count:
                break
        channel.cancel()
