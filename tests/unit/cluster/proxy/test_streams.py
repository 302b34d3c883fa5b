"""Readers of streams on fronts: roots die at any moment, and they go on where they were."""

from __future__ import annotations

import random
from typing import Any

import pytest

from pandomq import methods
from pandomq.fieldtable import Timestamp
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer
from tests.unit.broker.stream_scene import STREAM, heard_offsets
from tests.unit.cluster.proxy.pipe_world import Cluster
from tests.unit.cluster.proxy.test_chance import finish
from tests.unit.cluster.proxy.test_chance_of_consumers import disturb, heard, quietly

MESSAGES = 40


def reader(cluster: Cluster, offset: Any, prefetch: int = 5) -> Peer:
    peer = cluster.front.peer()
    peer.call(methods.BasicQos(0, prefetch, False), expect=methods.BasicQosOk)
    peer.send(methods.BasicConsume("s", "t", arguments={"x-stream-offset": offset}))
    return peer


def writer(cluster: Cluster, **arguments: Any) -> Peer:
    peer = cluster.fronts[-1].peer()
    peer.declare("s", durable=True, arguments={**STREAM, **arguments})
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    return peer


def write(peer: Peer, first: int, end: int) -> None:
    for number in range(first, end):
        peer.publish("", "s", b"%d" % number, Properties(headers={"n": number}))
    peer.hear()


@pytest.mark.proves("R26")
@pytest.mark.proves("R28")
def test_a_reader_goes_on_at_the_next_root() -> None:
    cluster = Cluster()
    author = writer(cluster)
    peer = reader(cluster, "next")
    write(author, 0, 8)
    assert heard_offsets(peer) == [0, 1, 2, 3, 4]
    peer.send(methods.BasicAck(2, True))
    assert heard_offsets(peer) == [5, 6]
    cluster.change_root()
    assert heard_offsets(peer) == [], "it has as many as it wants"
    peer.send(methods.BasicAck(3, False))
    assert heard_offsets(peer) == [7], "what it has got does not come again, acknowledged or not"
    peer.send(methods.BasicAck(0, True))
    write(author, 8, 11)
    assert heard_offsets(peer) == [8, 9, 10]


def test_a_reader_that_has_got_nothing_misses_nothing() -> None:
    cluster = Cluster()
    author = writer(cluster)
    write(author, 0, 3)
    peers = [reader(cluster, offset) for offset in ("next", 3, "1h")]
    assert [heard_offsets(peer) for peer in peers] == [[], [], [0, 1, 2]]
    cluster.change_root()
    write(author, 3, 5)
    assert [heard_offsets(peer) for peer in peers] == [[3, 4], [3, 4], [3, 4]]


def test_acks_of_stream_messages_put_no_confirm_in_doubt() -> None:
    cluster = Cluster()
    write(writer(cluster), 0, 5)
    peer = reader(cluster, "first", 3)
    peer.send(methods.ConfirmSelect())
    peer.hear()
    peer.send(methods.BasicAck(2, True))
    cluster.change_root()
    peer.send(methods.BasicAck(3, False))
    assert not any(isinstance(received.method, methods.ChannelClose) for received in peer.hear())


@pytest.mark.proves("R28")
@pytest.mark.parametrize("seed", range(15))
def test_everything_comes_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    cluster = Cluster("b", "c", replicated=True)
    author = writer(cluster, **{"x-stream-max-segment-size-bytes": 300})
    peer = reader(cluster, chance.choice(("first", "next", "last", 0)), chance.choice((1, 3, 100)))
    for number in range(MESSAGES):
        author.say_publish("", "s", b"%d" % number)
    author.flush()
    assert cluster.root is not None
    cluster.root.late = True
    offsets: list[int] = []
    unacked = 0
    for _ in range(40 * MESSAGES):
        disturb(cluster, chance)
        for received in heard(cluster, peer):
            if isinstance(received.method, methods.BasicDeliver):
                assert received.properties is not None and received.properties.headers is not None
                offsets.append(received.properties.headers["x-stream-offset"])
                assert received.body == b"%d" % offsets[-1]
                unacked = received.method.delivery_tag
        if unacked and chance.random() < 0.5:
            quietly(cluster, peer, methods.BasicAck(unacked, True))
            unacked = 0
        if len(offsets) == MESSAGES:
            break
    finish(cluster)
    assert offsets == list(range(MESSAGES))
    assert heard_offsets(peer) == []


def test_methods_that_could_skip_messages_are_refused() -> None:
    cluster = Cluster()
    write(writer(cluster), 0, 10)
    peer = reader(cluster, "first", 3)
    peer.send(methods.BasicRecover(True))
    peer.hear()
    peer.send(methods.TxSelect())
    peer.hear()
    peer.send(methods.BasicRecover(True))
    assert peer.fault().reply_code == 540


@pytest.mark.parametrize("offset", [Timestamp(2**53), Timestamp(2**62), -1])
def test_an_offset_out_of_bounds_closes_the_channel_of_its_client_alone(offset: Any) -> None:
    cluster = Cluster("b", "c")
    publisher = writer(cluster)
    write(publisher, 0, 3)
    peer = reader(cluster, offset)
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose)
    assert close.reply_code == 406
    write(publisher, 3, 5)
    assert publisher.counts("s") == (5, 0)
    assert heard_offsets(reader(cluster, "first")) == [0, 1, 2, 3, 4]
