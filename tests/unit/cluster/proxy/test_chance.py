"""Roots die at any moment, with any part of what was said under way: laws that hold all the same."""

from __future__ import annotations

import random

import pytest

from pandomq import methods
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer
from tests.unit.cluster.proxy.pipe_world import Cluster

MESSAGES = 60
SEEDS = range(20)


def prepared(chance: random.Random) -> tuple[Cluster, Peer, list[Peer]]:
    """A publisher that wants confirms, and subscribers with private queues on both fronts."""
    cluster = Cluster("b", "c", replicated=True)
    publisher = cluster.fronts[0].peer()
    publisher.declare("q", durable=True)
    publisher.call(methods.QueueBind("q", "amq.fanout", ""), expect=methods.QueueBindOk)
    subscribers = []
    for number, front in enumerate((*cluster.fronts, *cluster.fronts)):
        subscriber = front.peer()
        subscriber.declare(f"p{number}", exclusive=True)
        subscriber.call(methods.QueueBind(f"p{number}", "amq.fanout", ""), expect=methods.QueueBindOk)
        subscribers.append(subscriber)
    publisher.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    assert cluster.root is not None
    cluster.root.late = True
    return cluster, publisher, subscribers


def say(cluster: Cluster, peer: Peer, number: int) -> None:
    """Without carrying anything further than to the front."""
    settle, cluster.settle = cluster.settle, lambda: None  # type: ignore[method-assign]
    peer.publish("amq.fanout", "", b"%d" % number, Properties(delivery_mode=1 + number % 2))
    cluster.settle = settle  # type: ignore[method-assign]


def finish(cluster: Cluster) -> None:
    assert cluster.root is not None
    cluster.root.late = False
    cluster.root.commit()
    cluster.settle()
    cluster.pass_time(2_000)


@pytest.mark.proves("R29")
def test_unconfirmed_publishes_are_sent_again_once() -> None:
    cluster = Cluster(late=True)
    peer = cluster.front.connect()
    peer.send(methods.ChannelOpen(), methods.QueueDeclare("q", durable=True), methods.ConfirmSelect())
    assert cluster.root is not None
    cluster.root.commit()
    cluster.settle()
    assert len(peer.heard()) == 3
    for number in range(3):
        peer.publish("", "q", b"%d" % number, Properties(delivery_mode=2))
    # Two of them are committed, and the front is not told before the root dies.
    root = cluster.root
    root.committed_index = len(root.entries) - 1
    cluster.change_root()
    assert confirmed(peer) == {1, 2, 3}
    peer.publish("", "q", b"3", Properties(delivery_mode=2))
    assert peer.heard() == [methods.BasicAck(4, False)]
    got = [peer.get() for _ in range(5)]
    assert [one.body for one in got if one is not None] == [b"0", b"1", b"2", b"3"]


@pytest.mark.proves("R29", "R30")
@pytest.mark.parametrize("seed", SEEDS)
def test_every_publish_counts_once_everywhere(seed: int) -> None:
    chance = random.Random(seed)
    cluster, publisher, subscribers = prepared(chance)
    bodies = [b"%d" % number for number in range(MESSAGES)]
    for number in range(MESSAGES):
        say(cluster, publisher, number)
        cluster.stir(chance, chance.randrange(6))
        if chance.random() < 0.08:
            root = cluster.root
            assert root is not None
            cluster.change_root(chance.randint(root.committed_index, len(root.entries))).late = True
    finish(cluster)
    assert confirmed(publisher) == set(range(1, MESSAGES + 1))
    assert drained(publisher, "q") == bodies
    for number, subscriber in enumerate(subscribers):
        assert drained(subscriber, f"p{number}") == bodies


def confirmed(peer: Peer) -> set[int]:
    numbers: set[int] = set()
    for method in peer.heard():
        assert isinstance(method, methods.BasicAck)
        if method.multiple:
            numbers.update(range(1, method.delivery_tag + 1))
        else:
            assert method.delivery_tag not in numbers
            numbers.add(method.delivery_tag)
    return numbers


def drained(peer: Peer, queue: str) -> list[bytes]:
    bodies = []
    while (got := peer.get(queue)) is not None:
        bodies.append(got.body)
    return bodies
