"""A broker that cannot reach the root, but can reach another primary: its clients continue, over a relay (R29)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.integration.cable import Cable
from tests.integration.waiting import pump, wait_until

from . import network
from .cluster import PATIENCE_S, Cluster, running
from .conftest import skip_unless_possible
from .process import ClusterBroker
from .secondaries import joined
from .test_proxy_failover import ProxiedPublisher

MORE = 50


class Work:
    """A publisher, a consumer and a subscriber, all clients of one broker."""

    def __init__(self, broker: ClusterBroker, queue: str) -> None:
        self.publisher = ProxiedPublisher(broker, queue)
        self._connection = pika.BlockingConnection(broker.parameters())
        self._channel = self._connection.channel()
        self._channel.basic_qos(prefetch_count=20)
        self.taken: list[tuple[bytes, bool]] = []
        self.heard: list[bytes] = []
        self._channel.basic_consume(queue, self._take)
        private = self._channel.queue_declare("", exclusive=True).method.queue
        self._channel.queue_bind(private, "amq.fanout")
        self._channel.basic_consume(private, lambda _c, _m, _p, body: self.heard.append(body), auto_ack=True)

    def _take(self, channel: Any, method: pika.spec.Basic.Deliver, _: object, body: bytes) -> None:
        self.taken.append((body, method.redelivered))
        channel.basic_ack(method.delivery_tag)

    def goes_on(self, what: str) -> None:
        confirmed, taken = len(self.publisher.confirmed) + MORE, len(self.taken) + MORE
        self.pump(lambda: self.publisher.has(confirmed) and len(self.taken) >= taken, what)

    def pump(self, condition: Any, what: str) -> None:
        pump(self._connection, condition, what)

    def finish(self) -> None:
        """Checks that all confirmed messages have arrived, and that repeated deliveries have `redelivered` set."""
        self.publisher.end()
        assert self.publisher.failure is None
        wanted = set(self.publisher.confirmed)
        self.pump(lambda: wanted <= {body for body, _ in self.taken}, "all that was confirmed")
        first = [body for body, redelivered in self.taken if not redelivered]
        assert len(first) == len(set(first))
        assert self._channel.queue_declare("orders", passive=True).method.message_count == 0
        self._connection.close()

    def stop(self) -> None:
        self.publisher.end()


@contextlib.contextmanager
def at_work(broker: ClusterBroker) -> Iterator[Work]:
    work = Work(broker, "orders")
    try:
        yield work
        work.finish()
    finally:
        work.stop()


def way(broker: ClusterBroker, other: ClusterBroker) -> str:
    """Returns the route of its link to the other, in its own words."""
    links: list[dict[str, str]] = broker.status.get("links", [])
    return next((link["state"] for link in links if link["name"] == other.name), "")


def publish(broker: ClusterBroker, body: bytes) -> None:
    with pika.BlockingConnection(broker.parameters()) as connection:
        connection.channel().basic_publish("amq.fanout", "", body)


@contextlib.contextmanager
def cables(cluster: Cluster) -> Iterator[dict[tuple[str, str], Cable]]:
    """Each primary dials each other by a cable of its own."""
    with contextlib.ExitStack() as stack:
        between = {
            (one.name, other.name): stack.enter_context(Cable(other.host, other.port))
            for one in cluster
            for other in cluster
            if one is not other
        }
        for one in cluster:
            primaries = [
                f"{other.name}={other.address if other is one else f'127.0.0.1:{between[one.name, other.name].port}'}"
                for other in cluster
            ]
            one.configure({"cluster": {"primaries": primaries}})
        yield between


@pytest.mark.proves("R29")
@pytest.mark.timeout(240)
def test_clients_of_a_backup_that_is_cut_off_from_the_root_go_on(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    with cables(cluster) as between, running(cluster):
        root, (cut_off, third) = cluster.root, cluster.backups
        with at_work(cut_off) as work:
            work.goes_on("before the cut")
            for pair in ((root.name, cut_off.name), (cut_off.name, root.name)):
                between[pair].unplug()
            work.goes_on("while it is cut off")
            by_way = f"linked through {third.name}"
            work.pump(lambda: way(cut_off, root) == way(root, cut_off) == by_way, "the way through the third")
            cluster.wait_until_whole()
            assert cluster.root is root, "nobody had to be elected"
            publish(root, b"from the root")
            work.pump(lambda: work.heard == [b"from the root"], "what others publish")
            for cable in between.values():
                cable.plug()
            # The relay may end at any time, and the direct path works again.
            third.stop()
            work.goes_on("without the third")
            wait_until(lambda: way(cut_off, root) == "linked", "the direct way", PATIENCE_S)
        third.start()
        cluster.wait_until_whole()


@pytest.mark.slow
@pytest.mark.proves("R29")
@pytest.mark.timeout(300)
def test_clients_of_a_secondary_that_is_cut_off_from_the_root_go_on(tmp_path: Path) -> None:
    """The path is cut in silence, and the secondary returns to the direct path by itself."""
    skip_unless_possible(network.missing())
    lab = network.Network(("n1", "n2", "n3", "s1"))
    try:
        lab.open()
        with running(Cluster(tmp_path, network=lab)) as cluster, joined(cluster, "s1") as (secondary,):
            root = cluster.root
            with at_work(secondary) as work:
                work.goes_on("before the cut")
                lab.cut_off(root.name, secondary.name)
                work.goes_on("while it is cut off")
                work.pump(lambda: way(secondary, root).startswith("linked through"), "the way through another")
                publish(root, b"from the root")
                work.pump(lambda: work.heard == [b"from the root"], "what others publish")
                lab.heal()
                work.goes_on("after that")
                wait_until(lambda: way(secondary, root) == "linked", "the direct way", PATIENCE_S)
                work.goes_on("in the end")
    finally:
        lab.close()
