"""The root dies while clients of other brokers work: they continue, on the same connections, and nothing is lost."""

from __future__ import annotations

import threading
from typing import Any

import pika
import pytest

from tests.integration.waiting import pump

from .cluster import Cluster
from .process import ClusterBroker

PERSISTENT = pika.BasicProperties(delivery_mode=2)
BEFORE, AFTER = 100, 100


class ProxiedPublisher:
    """Publishes one message after the other with confirms, on one connection, in a thread of its own."""

    def __init__(self, broker: ClusterBroker, queue: str, arguments: dict[str, Any] | None = None) -> None:
        self._connection = pika.BlockingConnection(broker.parameters())
        self._channel = self._connection.channel()
        self._channel.queue_declare(queue, durable=True, arguments=arguments)
        self._channel.confirm_delivery()
        self._queue = queue
        self.confirmed: list[bytes] = []
        self.ending = False
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self.ending:
                body = str(len(self.confirmed)).encode()
                self._channel.basic_publish("", self._queue, body, PERSISTENT, mandatory=True)
                self.confirmed.append(body)
            self._connection.close()
        except Exception as failure:
            self.failure = failure

    def has(self, count: int) -> bool:
        assert self.failure is None, self.failure
        return len(self.confirmed) >= count

    def end(self) -> None:
        self.ending = True
        self._thread.join()


@pytest.mark.proves("R28", "R29")
@pytest.mark.timeout(120)
def test_clients_of_backups_outlive_the_root(proxies: Cluster) -> None:
    root = proxies.root
    one, other = proxies.backups
    publisher = ProxiedPublisher(one, "orders")
    connection = pika.BlockingConnection(other.parameters())
    channel = connection.channel()
    channel.basic_qos(prefetch_count=20)
    taken: list[tuple[bytes, bool]] = []

    def take(_: object, method: pika.spec.Basic.Deliver, __: object, body: bytes) -> None:
        taken.append((body, method.redelivered))
        channel.basic_ack(method.delivery_tag)

    try:
        channel.basic_consume("orders", take)
        private = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(private, "amq.fanout")
        pump(connection, lambda: publisher.has(BEFORE), "messages before the fault")
        root.kill()
        proxies.wait_for_root(other_than=root)
        count = len(publisher.confirmed)
        pump(connection, lambda: publisher.has(count + AFTER), "messages after the fault")
    finally:
        publisher.end()
    assert publisher.failure is None
    wanted = set(publisher.confirmed)
    pump(connection, lambda: wanted <= {body for body, _ in taken}, "all that was confirmed")
    first = [body for body, redelivered in taken if not redelivered]
    assert len(first) == len(set(first)), "who comes back says so"
    fresh = pika.BlockingConnection(one.parameters())
    fresh.channel().basic_publish("amq.fanout", "", b"still here")
    got: list[bytes] = []
    channel.basic_consume(private, lambda _c, _m, _p, body: got.append(body), auto_ack=True)
    pump(connection, lambda: got, "the private queue to hear")
    fresh.close()
    connection.close()
