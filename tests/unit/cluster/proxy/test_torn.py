"""The root dies in the middle of everything, again and again: each message is in each queue once, and in order."""

from __future__ import annotations

import random

import pytest

from pandomq import methods
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer
from tests.unit.cluster.proxy.pipe_world import Cluster

STEPS = 150


class TornCluster(Cluster):
    """While it is `torn`, messages under way do not arrive."""

    torn = False

    def settle(self) -> None:
        if not self.torn:
            super().settle()

    def replace_root(self, chance: random.Random) -> None:
        self.torn = False
        assert self.root is not None
        self.change_root(chance.randint(self.root.committed_index, len(self.root.entries))).late = True
        self.torn = True


class Publisher:
    def __init__(self, peer: Peer, name: str) -> None:
        self.peer = peer
        self.name = name
        self.sent: list[bytes] = []
        self.confirmed = 0
        self.ahead: set[int] = set()
        peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)

    def publish(self, chance: random.Random) -> None:
        self.sent.append(f"{self.name}{len(self.sent)}".encode())
        key = chance.choice(["shared", "private", "both", "both"])
        self.sent[-1] += key.encode()
        self.peer.publish("amq.topic", key, self.sent[-1], Properties(delivery_mode=chance.choice([1, 2])))

    def hear(self) -> None:
        for method in self.peer.heard():
            assert isinstance(method, methods.BasicAck), method
            numbers = range(1, method.delivery_tag + 1) if method.multiple else (method.delivery_tag,)
            self.ahead.update(number for number in numbers if number > self.confirmed)
        while self.confirmed + 1 in self.ahead:
            self.confirmed += 1
            self.ahead.remove(self.confirmed)


def wanted(publishers: list[Publisher], *keys: str) -> dict[str, list[bytes]]:
    return {one.name: [body for body in one.sent if body.endswith(tuple(map(str.encode, keys)))] for one in publishers}


def by_publisher(bodies: list[bytes], names: list[str]) -> dict[str, list[bytes]]:
    return {name: [body for body in bodies if body.startswith(name.encode())] for name in names}


@pytest.mark.proves("R29", "R30", "R31")
@pytest.mark.parametrize("seed", range(30))
def test_each_message_is_in_each_queue_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    cluster = TornCluster("b", "c", replicated=True)
    subscribers = [front.peer() for front in cluster.fronts]
    for peer in subscribers:
        peer.declare("", exclusive=True)
        for key in ("private", "both"):
            peer.call(methods.QueueBind("", "amq.topic", key), expect=methods.QueueBindOk)
        peer.call(methods.BasicConsume("", "t", no_ack=True), expect=methods.BasicConsumeOk)
    subscribers[0].declare("q", durable=True)
    for key in ("shared", "both"):
        subscribers[0].call(methods.QueueBind("q", "amq.topic", key), expect=methods.QueueBindOk)
    publishers = [Publisher(front.peer(), name) for front, name in zip(cluster.fronts, "xy", strict=True)]
    publishers.append(Publisher(cluster.fronts[0].peer(), "z"))
    assert cluster.root is not None
    cluster.root.late = cluster.torn = True
    got: list[list[bytes]] = [[] for _ in subscribers]
    for _ in range(STEPS):
        if chance.random() < 0.02:
            # All brokers have the confirmed messages, whatever happens now.
            for one in publishers:
                one.hear()
            confirmed = [(one, one.confirmed, set(one.ahead)) for one in publishers]
            cluster.replace_root(chance)
            _check_confirmed(cluster, confirmed)
        elif chance.random() < 0.3:
            chance.choice(publishers).publish(chance)
        else:
            cluster.stir(chance, 1)
        for peer, bodies in zip(subscribers, got, strict=True):
            bodies += peer.bodies()
    cluster.replace_root(chance)
    cluster.root.late = cluster.torn = False
    cluster.root.commit()
    cluster.pass_time(6_000)
    names = [one.name for one in publishers]
    for peer, bodies in zip(subscribers, got, strict=True):
        bodies += peer.bodies()
        assert by_publisher(bodies, names) == wanted(publishers, "private", "both")
    shared: list[bytes] = []
    while (message := subscribers[0].get("q")) is not None:
        shared.append(message.body)
    assert by_publisher(shared, names) == wanted(publishers, "shared", "both")
    for one in publishers:
        one.hear()
        assert one.confirmed == len(one.sent)


def _check_confirmed(cluster: Cluster, confirmed: list[tuple[Publisher, int, set[int]]]) -> None:
    """The new root has them in its queue, though nobody has sent them again."""
    assert cluster.root is not None
    rows = cluster.root.broker.state.vhosts["/"].queues["q"].kernel.snapshot()
    held = {message.body for *_, message in rows}
    for one, number, ahead in confirmed:
        for known in (*range(1, number + 1), *ahead):
            body = one.sent[known - 1]
            assert body in held or body.endswith(b"private")
