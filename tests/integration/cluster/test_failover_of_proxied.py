"""The root dies while a client works through another broker; the client continues without an interruption.

Each test has two variants: the client is on a backup, which may be the next root, or on a secondary, which is not.
`make test` runs one variant of each, half of them there and half of them here.
"""

from __future__ import annotations

import itertools
import select
import time
from collections.abc import Iterator
from typing import Any

import pika
import pytest

from tests.support.client import Address, Channel, Connection
from tests.support.methods import Method

from .cluster import Cluster, running
from .process import ClusterBroker
from .secondaries import Secondary, joined

pytestmark = [pytest.mark.proves("R28", "R29"), pytest.mark.timeout(180)]

PATIENCE_S = 60.0
PERSISTENT: dict[str, Any] = {"delivery_mode": 2}
_numbers = itertools.count(1)

on_backup = pytest.mark.parametrize(
    "stage", ["backup", pytest.param("secondary", marks=pytest.mark.slow)], indirect=True
)
on_secondary = pytest.mark.parametrize(
    "stage", [pytest.param("backup", marks=pytest.mark.slow), "secondary"], indirect=True
)


class Stage:
    """A cluster whose root can be killed, and clients on another of its brokers."""

    def __init__(self, cluster: Cluster, secondary: Secondary, place: str) -> None:
        self.cluster = cluster
        self.root = cluster.root
        self.at: ClusterBroker = secondary if place == "secondary" else cluster.backups[0]
        self.queue = f"proxied.{next(_numbers)}"
        self._opened: list[Connection] = []
        self._killed: ClusterBroker | None = None

    def channel(self, broker: ClusterBroker | None = None) -> Channel:
        """Opens a channel on a new connection, by default to the broker of this variant."""
        broker = broker or self.at
        connection = Connection.opened(Address(broker.host, broker.port, *broker.login))
        self._opened.append(connection)
        return connection.channel()

    def kill_root(self) -> None:
        self._killed = self.root
        self.root.kill()

    def end(self) -> None:
        for connection in self._opened:
            connection.drop()
        if self._killed is not None and not self._killed.alive:
            self._killed.start()
        self.cluster.wait_until_whole()

    def filled(self, count: int, **arguments: object) -> Channel:
        """Declares a queue with so many durable messages; returns a channel."""
        channel = self.channel()
        channel.rpc("queue.declare", queue=self.queue, durable=True, arguments=arguments)
        publish(channel, self.queue, range(count))
        return channel

    def rest(self) -> list[bytes]:
        """Returns the messages that a client of the new root finds in the queue."""
        new = self.cluster.wait_for_root(other_than=self._killed)
        return self.channel(new).drain(self.queue)


@pytest.fixture(scope="module")
def grove(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Secondary]]:
    made = Cluster(tmp_path_factory.mktemp("proxied"), sections={"cluster": {"access": "proxy"}})
    with running(made) as cluster, joined(cluster, "s1") as (secondary,):
        yield cluster, secondary


@pytest.fixture
def stage(grove: tuple[Cluster, Secondary], request: pytest.FixtureRequest) -> Iterator[Stage]:
    cluster, secondary = grove
    cluster.wait_until_whole()
    secondary.wait_until_in_step()
    stage = Stage(cluster, secondary, request.param)
    yield stage
    stage.end()


def body(number: int) -> bytes:
    return b"%d" % number


def publish(channel: Channel, queue: str, numbers: range) -> None:
    with channel.settling():
        for number in numbers:
            channel.publish(body(number), queue, **PERSISTENT)


def deliveries(channel: Channel, count: int) -> list[Method]:
    return [channel.delivery(PATIENCE_S) for _ in range(count)]


def take_all(channel: Channel, wanted: set[bytes]) -> dict[bytes, Method]:
    """Returns the newest delivery of each of these; a second delivery must have `redelivered` set."""
    taken: dict[bytes, Method] = {}
    while not wanted <= taken.keys():
        delivery = channel.delivery(PATIENCE_S)
        assert delivery.body not in taken or delivery.redelivered, delivery.body
        taken[delivery.body] = delivery
    return {one: taken[one] for one in wanted}


def get(channel: Channel, queue: str) -> Method | None:
    channel.send("basic.get", queue=queue, no_ack=False)
    method = channel.receive(PATIENCE_S)
    return None if method.name == "basic.get-empty" else method


@on_secondary
def test_confirms(stage: Stage) -> None:
    """Each publish is confirmed, and is there once, whichever root it reached."""
    channel = stage.filled(5)
    channel.connection.socket.settimeout(PATIENCE_S)
    with channel.settling():
        for number in range(5, 105):
            channel.publish(body(number), stage.queue, **PERSISTENT)
            if number == 50:
                stage.kill_root()
    assert stage.rest() == [body(number) for number in range(105)]


class Worker:
    """On one channel of pika's: publishes with confirms, and acks its deliveries after a while."""

    def __init__(self, stage: Stage) -> None:
        self._connection = pika.BlockingConnection(stage.at.parameters())
        self._channel = self._connection.channel()
        self._queue = stage.queue
        self._channel.queue_declare(stage.queue, durable=True)
        self._channel.confirm_delivery()
        self._channel.basic_qos(prefetch_count=20)
        self._held: list[tuple[int, bytes]] = []
        self._unproven: set[bytes] = set()
        self.confirmed: set[bytes] = set()
        self.acked: set[bytes] = set()
        self.proven: set[bytes] = set()
        self.seen: set[bytes] = set()
        self._channel.basic_consume(stage.queue, self._take)

    def _take(self, _: object, method: Any, __: object, taken: bytes) -> None:
        assert taken not in self.proven, "an ack was proven, and the message came back"
        assert taken not in self.seen or method.redelivered, "who comes back says so"
        self.seen.add(taken)
        self._held.append((method.delivery_tag, taken))

    def publish(self, number: int) -> None:
        """The confirm of this publish proves all earlier acks."""
        self._channel.basic_publish(
            "", self._queue, body(number), pika.BasicProperties(delivery_mode=2), mandatory=True
        )
        self.confirmed.add(body(number))
        self.proven |= self._unproven
        self._unproven.clear()

    def ack(self, count: int) -> None:
        for tag, taken in self._held[:count]:
            self._channel.basic_ack(tag)
            self._unproven.add(taken)
            self.acked.add(taken)
        del self._held[:count]

    def pump(self) -> None:
        self._connection.process_data_events(0.01)

    def finish(self) -> None:
        """Everything is consumed, and acked."""
        deadline = time.monotonic() + PATIENCE_S
        while self.acked < self.confirmed or self._held:
            assert time.monotonic() < deadline, self.confirmed - self.acked
            self.pump()
            self.ack(len(self._held))
        self._connection.close()


@on_backup
def test_acks_and_confirms_on_one_channel(stage: Stage) -> None:
    """The channel continues. Acked messages do not come back, and others have `redelivered` set."""
    worker = Worker(stage)
    for number in range(300):
        worker.publish(number)
        worker.pump()
        if number == 150:
            # Some are held by the client, the acks of others are under way.
            worker.ack(6)
            stage.kill_root()
            worker.ack(4)
        elif number % 3 == 0:
            worker.ack(4)
    worker.finish()
    assert worker.confirmed == worker.acked == {body(number) for number in range(300)}
    assert stage.rest() == []


@on_backup
def test_get(stage: Stage) -> None:
    publisher, channel = stage.filled(10), stage.channel()
    first = [get(channel, stage.queue) for _ in range(4)]
    assert [one.body for one in first if one is not None] == [body(number) for number in range(4)]
    stage.kill_root()
    # A message that was received by basic.get and not acked is redelivered with the mark.
    found: dict[bytes, Method] = {}
    while (method := get(channel, stage.queue)) is not None:
        assert method.name == "basic.get-ok", method
        assert method.body not in found
        found[method.body] = method
    assert set(found) == {body(number) for number in range(10)}
    assert all(found[body(number)].redelivered for number in range(4))
    for method in found.values():
        channel.send("basic.ack", delivery_tag=method.delivery_tag)
    publish(publisher, stage.queue, range(10, 11))
    assert stage.rest() == [body(10)]


@on_backup
def test_recover(stage: Stage) -> None:
    channel = stage.filled(6)
    channel.consume(stage.queue)
    assert [one.body for one in deliveries(channel, 6)] == [body(number) for number in range(6)]
    stage.kill_root()
    channel.send("basic.recover", requeue=True)
    seen: dict[bytes, Method] = {}
    recovered = False
    while not (recovered and len(seen) == 6):
        method = channel.receive(PATIENCE_S)
        if method.name == "basic.recover-ok":
            # A quick next root may have delivered once before it received this: those messages were requeued.
            recovered = True
            seen.clear()
            continue
        assert method.name == "basic.deliver" and method.redelivered, method
        seen[method.body] = method
    channel.send("basic.ack", delivery_tag=0, multiple=True)
    channel.rpc("basic.cancel", consumer_tag=seen[body(0)].consumer_tag)
    publish(stage.channel(), stage.queue, range(6, 7))
    assert stage.rest() == [body(6)]


@on_backup
def test_transaction(stage: Stage) -> None:
    """It is applied as a whole or not at all, and the client's answer is correct."""
    stage.filled(3)
    channel = stage.channel()
    channel.rpc("tx.select")
    taken = get(channel, stage.queue)
    assert taken is not None
    channel.send("basic.ack", delivery_tag=taken.delivery_tag)
    for number in range(3, 6):
        channel.publish(body(number), stage.queue, **PERSISTENT)
    stage.kill_root()
    channel.send("tx.commit")
    outcome = channel.receive(PATIENCE_S)
    assert outcome.name == "channel.close" and outcome.reply_code == 406, outcome
    assert "rolled back" in outcome.reply_text
    assert sorted(stage.rest()) == [body(number) for number in range(3)]


@on_secondary
def test_transaction_in_doubt(stage: Stage) -> None:
    """The commit is under way when the root dies: either answer may come, and is correct."""
    stage.filled(1)
    channel = stage.channel()
    channel.rpc("tx.select")
    for number in range(1, 4):
        channel.publish(body(number), stage.queue, **PERSISTENT)
    channel.send("tx.commit")
    stage.kill_root()
    outcome = channel.receive(PATIENCE_S)
    expected = range(4) if outcome.name == "tx.commit-ok" else range(1)
    assert outcome.name == "tx.commit-ok" or outcome.reply_code == 406, outcome
    assert sorted(stage.rest()) == [body(number) for number in expected]


@on_secondary
def test_single_active_consumer(stage: Stage) -> None:
    """One of the two is active at the next root: the first that was registered there. The other one is active
    afterwards."""
    publisher = stage.filled(2, **{"x-single-active-consumer": True})
    first, second = stage.channel(), stage.channel()
    first.consume(stage.queue, "consumer")
    second.consume(stage.queue, "consumer")
    for delivery in deliveries(first, 2):
        first.send("basic.ack", delivery_tag=delivery.delivery_tag)
    stage.kill_root()
    publish(publisher, stage.queue, range(2, 5))
    active = whoever_hears(first, second)
    other = second if active is first else first
    taken = take_all(active, {body(number) for number in range(2, 5)})
    active.send("basic.ack", delivery_tag=max(one.delivery_tag for one in taken.values()), multiple=True)
    active.rpc("basic.cancel", consumer_tag="consumer")
    publish(publisher, stage.queue, range(5, 7))
    found = take_all(other, {body(5), body(6)})
    assert not any(one.redelivered for one in found.values())


def whoever_hears(*channels: Channel) -> Channel:
    """Returns the first of these on whose connections a method arrives."""
    sockets: dict[Any, Channel] = {channel.connection.socket: channel for channel in channels}
    ready, _, _ = select.select(list(sockets), [], [], PATIENCE_S)
    assert ready, "nobody hears anything"
    return sockets[ready[0]]


@on_backup
def test_consumer_priority(stage: Stage) -> None:
    publisher = stage.filled(1)
    low, high = stage.channel(), stage.channel()
    low.consume(stage.queue, "low", no_ack=True)
    assert low.delivery(PATIENCE_S).body == body(0)
    high.consume(stage.queue, "high", no_ack=True, arguments={"x-priority": 5})
    stage.kill_root()
    publish(publisher, stage.queue, range(1, 2))
    # When both are attached to the new root again, which takes a while, the one with priority receives everything.
    wait_for_both(stage, publisher)
    publish(publisher, stage.queue, range(100, 120))
    assert set(take_all(high, {body(number) for number in range(100, 120)})) == {body(n) for n in range(100, 120)}


def wait_for_both(stage: Stage, channel: Channel) -> None:
    new = stage.cluster.wait_for_root(other_than=stage.root)
    counter = stage.channel(new)
    for _ in range(600):
        if counter.counts(stage.queue)[1] == 2:
            return
    raise AssertionError("the consumers are not there again")
