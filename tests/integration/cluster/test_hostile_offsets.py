"""A consumer that asks for a time far away, at each broker of a cluster: no confirmed message is lost or out of order,
and the root stays."""

from __future__ import annotations

import threading

import pytest

from tests.integration.waiting import PATIENCE_S
from tests.support.client import Address, Connection
from tests.support.fields import Typed

from .cluster import Cluster
from .process import PASSWORD, USER, ClusterBroker

QUEUE, STREAM = "beside", "far.away"
ASKS = 10


def open_at(broker: ClusterBroker) -> Connection:
    return Connection.opened(Address(broker.host, broker.port, USER, PASSWORD))


class Publisher:
    """Publishes persistent numbers, each after the confirm of the one before."""

    def __init__(self, broker: ClusterBroker) -> None:
        self._connection = open_at(broker)
        self._over = threading.Event()
        self.confirmed = 0
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        try:
            channel = self._connection.channel()
            channel.rpc("confirm.select")
            while not self._over.is_set():
                channel.publish(f"{self._connection.address.port} {self.confirmed}".encode(), QUEUE, delivery_mode=2)
                assert channel.confirmed().name == "basic.ack"
                self.confirmed += 1
        except BaseException as failure:
            self.failure = failure

    def end(self) -> None:
        self._over.set()
        self._thread.join(PATIENCE_S)
        self._connection.close()


@pytest.mark.proves("R38")
def test_no_broker_loses_a_confirmed_message(proxies: Cluster) -> None:
    root = proxies.root
    setup = open_at(root)
    channel = setup.channel()
    channel.declare_queue(QUEUE, durable=True, exclusive=False)
    channel.declare_queue(STREAM, durable=True, exclusive=False, arguments={"x-queue-type": "stream"})
    publishers = {broker.port: Publisher(broker) for broker in proxies}
    for _ in range(ASKS):
        for broker in proxies:
            hostile = open_at(broker)
            asking = hostile.channel()
            asking.send("basic.qos", prefetch_count=1)
            asking.send("basic.consume", queue=STREAM, arguments={"x-stream-offset": Typed("T", 2**62)})
            while asking.receive().name != "channel.close":
                pass
            hostile.drop()
    for publisher in publishers.values():
        publisher.end()
        assert publisher.failure is None
    assert proxies.root is root
    bodies = [body.decode().split() for body in channel.drain(QUEUE)]
    for port, publisher in publishers.items():
        assert publisher.confirmed > 0
        assert [int(number) for owner, number in bodies if owner == str(port)] == list(range(publisher.confirmed))
    for broker in proxies:
        assert "Traceback" not in broker.words
    setup.close()
