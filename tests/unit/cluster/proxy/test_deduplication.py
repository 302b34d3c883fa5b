"""Numbered publishes on fronts: the root decides what came before, roots die at any moment, and so do connections."""

from __future__ import annotations

import random

import pytest

from pandomq import methods
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer
from tests.unit.cluster.proxy.pipe_world import Cluster
from tests.unit.cluster.proxy.test_chance import MESSAGES, SEEDS, confirmed, drained, finish, prepared


def numbered(number: int) -> Properties:
    return Properties(delivery_mode=1 + number % 2, headers={"x-producer": "p", "x-sequence": number})


def publish(peer: Peer, *numbers: int) -> None:
    for number in numbers:
        peer.publish("amq.fanout", "", b"%d" % number, numbered(number))


@pytest.mark.proves("R25", "R28")
def test_private_queues_here_and_elsewhere_get_one_copy() -> None:
    cluster, publisher, subscribers = prepared(random.Random(1))
    finish(cluster)
    publish(publisher, 0, 1, 1, 0, 2)
    assert confirmed(publisher) == set(range(1, 6))
    for number, subscriber in enumerate(subscribers):
        assert drained(subscriber, f"p{number}") == [b"0", b"1", b"2"]


@pytest.mark.proves("R25", "R28")
def test_a_transaction_that_is_sent_again_from_another_front() -> None:
    cluster, publisher, subscribers = prepared(random.Random(1))
    finish(cluster)
    for front in cluster.fronts:
        peer = front.peer()
        peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
        publish(peer, 0, 1)
        peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    for number, subscriber in enumerate(subscribers):
        assert drained(subscriber, f"p{number}") == [b"0", b"1"]
    assert drained(publisher, "q") == [b"0", b"1"]


@pytest.mark.proves("R25", "R28")
def test_a_fenced_producer_is_fenced_at_the_next_root() -> None:
    cluster, old, _ = prepared(random.Random(1))
    finish(cluster)
    publish(old, 0)
    new = cluster.fronts[1].peer()
    publish(new, 0, 1)
    cluster.change_root()
    old.hear()
    publish(old, 2)
    (close,) = old.heard()
    assert isinstance(close, methods.ChannelClose)
    assert close.reply_code == 406
    publish(new, 2)
    assert drained(new, "q") == [b"0", b"1", b"2"]


@pytest.mark.proves("R25", "R28")
@pytest.mark.parametrize("seed", SEEDS)
def test_unconfirmed_messages_that_are_sent_again_arrive_once(seed: int) -> None:
    chance = random.Random(seed)
    cluster, publisher, subscribers = prepared(chance)
    first = 0
    """The first number that is not confirmed, and was sent on this connection as its first."""
    for number in range(MESSAGES):
        say(cluster, publisher, number)
        cluster.stir(chance, chance.randrange(6))
        if chance.random() < 0.08:
            root = cluster.root
            assert root is not None
            cluster.change_root(chance.randint(root.committed_index, len(root.entries))).late = True
        if chance.random() < 0.06:
            first += len(leading(acked(publisher)))
            publisher.leave()
            publisher = cluster.fronts[chance.randrange(2)].connect()
            publisher.send(methods.ChannelOpen(), methods.ConfirmSelect())
            for again in range(first, number + 1):
                say(cluster, publisher, again)
    finish(cluster)
    assert first + len(leading(acked(publisher))) == MESSAGES
    assert drained(publisher, "q") == [b"%d" % number for number in range(MESSAGES)]
    for number, subscriber in enumerate(subscribers):
        got = drained(subscriber, f"p{number}")
        assert len(set(got)) == len(got)


def say(cluster: Cluster, peer: Peer, number: int) -> None:
    """Without carrying anything further than to the front."""
    settle, cluster.settle = cluster.settle, lambda: None  # type: ignore[method-assign]
    publish(peer, number)
    cluster.settle = settle  # type: ignore[method-assign]


def acked(peer: Peer) -> set[int]:
    tags: set[int] = set()
    for method in peer.heard():
        if isinstance(method, methods.BasicAck):
            tags.update(range(1 if method.multiple else method.delivery_tag, method.delivery_tag + 1))
        else:
            assert isinstance(method, methods.ChannelOpenOk | methods.ConfirmSelectOk), method
    return tags


def leading(tags: set[int]) -> range:
    """Those from the first on that are all there."""
    end = 1
    while end in tags:
        end += 1
    return range(1, end)


@pytest.mark.proves("R25", "R28")
def test_numbers_of_another_user_take_nothing_from_private_queues() -> None:
    cluster = Cluster("b", "c")
    root = cluster.root
    assert root is not None
    root.admit("mallory", write="amq.direct")
    cluster.settle()
    reader = cluster.fronts[0].peer()
    reader.declare("mine", exclusive=True)
    reader.call(methods.QueueBind("mine", "amq.fanout", ""), expect=methods.QueueBindOk)
    reader.call(methods.QueueBind("mine", "amq.direct", "k"), expect=methods.QueueBindOk)
    fake = {"x-pandomq-user": "guest", "x-producer": "p", "x-sequence": 2}
    for front in cluster.fronts:
        mallory = front.peer("mallory")
        mallory.publish("amq.direct", "k", b"not 1", numbered(1))
        mallory.publish("amq.direct", "k", b"not 2", Properties(headers=fake))
    owner = cluster.fronts[1].peer()
    publish(owner, 1, 2, 2)
    found = [reader.get("mine") for _ in range(4)]
    assert [got.body for got in found if got is not None] == [b"not 1", b"not 2", b"1", b"2"]
    # The mark between brokers is not seen by consumers; a client's own header is.
    assert [got.properties.headers for got in found if got is not None and got.properties is not None] == [
        {"x-producer": "p", "x-sequence": 1},
        fake,
        {"x-producer": "p", "x-sequence": 1},
        {"x-producer": "p", "x-sequence": 2},
    ]
    assert reader.get("mine") is None
