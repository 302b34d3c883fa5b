"""Roots die at any moment while clients of fronts consume, settle and commit."""

from __future__ import annotations

import random

import pytest

from pandomq import methods
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, Received
from tests.unit.cluster.proxy.pipe_world import Cluster
from tests.unit.cluster.proxy.test_chance import drained, finish

MESSAGES = 30
SEEDS = range(15)
PERSISTENT = Properties(delivery_mode=2)


def stocked() -> Cluster:
    """A durable queue `in` with messages, and others for what becomes of them."""
    cluster = Cluster("b", "c", replicated=True)
    peer = cluster.fronts[1].peer()
    for name in ("in", "one", "two"):
        peer.declare(name, durable=True)
    for number in range(MESSAGES):
        peer.say_publish("", "in", b"%d" % number, PERSISTENT)
    peer.flush()
    assert peer.counts("in") == (MESSAGES, 0)
    assert cluster.root is not None
    cluster.root.late = True
    return cluster


def disturb(cluster: Cluster, chance: random.Random) -> None:
    cluster.stir(chance, chance.randrange(8))
    root = cluster.root
    assert root is not None
    if chance.random() < 0.08:
        cluster.change_root(chance.randint(root.committed_index, len(root.entries))).late = True


def quietly(cluster: Cluster, peer: Peer, *said: methods.Method) -> None:
    """Carried no further than to the front."""
    settle, cluster.settle = cluster.settle, lambda: None  # type: ignore[method-assign]
    peer.send(*said)
    cluster.settle = settle  # type: ignore[method-assign]


def heard(cluster: Cluster, peer: Peer) -> list[Received]:
    settle, cluster.settle = cluster.settle, lambda: None  # type: ignore[method-assign]
    found = peer.hear()
    cluster.settle = settle  # type: ignore[method-assign]
    return found


@pytest.mark.proves("R28")
@pytest.mark.parametrize("seed", SEEDS)
def test_first_deliveries_are_in_order_and_all_others_are_marked_redelivered(seed: int) -> None:
    chance = random.Random(seed)
    cluster = stocked()
    peer = cluster.front.peer()
    quietly(cluster, peer, methods.BasicQos(0, chance.choice((0, 1, 5)), False), methods.BasicConsume("in", "t"))
    bodies: list[bytes] = []
    for _ in range(40 * MESSAGES):
        disturb(cluster, chance)
        for received in heard(cluster, peer):
            if isinstance(received.method, methods.BasicDeliver):
                assert received.method.redelivered or received.body not in bodies
                bodies.append(received.body)
                quietly(cluster, peer, methods.BasicAck(received.method.delivery_tag, False))
        if len(set(bodies)) == MESSAGES:
            break
    finish(cluster)
    assert list(dict.fromkeys(bodies)) == [b"%d" % number for number in range(MESSAGES)]
    for received in peer.hear():
        assert isinstance(received.method, methods.BasicDeliver)
        assert received.method.redelivered
        peer.send(methods.BasicAck(received.method.delivery_tag, False))
    assert cluster.fronts[1].peer().counts("in") == (0, 1)


@pytest.mark.proves("R24")
@pytest.mark.parametrize("seed", SEEDS)
def test_the_acks_and_publishes_of_a_transaction_are_done_once(seed: int) -> None:
    chance = random.Random(1000 + seed)
    cluster = stocked()
    peer = cluster.front.peer()
    begin = (methods.TxSelect(), methods.BasicQos(0, 1, False), methods.BasicConsume("in", "t"))
    quietly(cluster, peer, *begin)
    for step in range(60 * MESSAGES):
        disturb(cluster, chance)
        for received in heard(cluster, peer):
            match received.method:
                case methods.BasicDeliver(delivery_tag=tag):
                    peer.say_publish("", "one", received.body, PERSISTENT)
                    peer.say_publish("", "two", received.body, PERSISTENT)
                    quietly(cluster, peer, methods.BasicAck(tag, False), methods.TxCommit())
                case methods.ChannelClose():
                    quietly(cluster, peer, methods.ChannelCloseOk(), methods.ChannelOpen(), *begin)
                case _:
                    pass
        if step % 20 == 19 and chance.random() < 0.5:
            assert cluster.root is not None
            cluster.root.commit()
    finish(cluster)
    for _ in range(4 * MESSAGES):
        for received in peer.hear():
            match received.method:
                case methods.BasicDeliver(delivery_tag=tag):
                    peer.say_publish("", "one", received.body, PERSISTENT)
                    peer.say_publish("", "two", received.body, PERSISTENT)
                    peer.send(methods.BasicAck(tag, False), methods.TxCommit())
                case methods.ChannelClose():
                    peer.send(methods.ChannelCloseOk(), methods.ChannelOpen(), *begin)
                case _:
                    pass
    other = cluster.fronts[1].peer()
    assert other.counts("in") == (0, 1)
    wanted = sorted(b"%d" % number for number in range(MESSAGES))
    assert sorted(drained(other, "one")) == sorted(drained(other, "two")) == wanted
