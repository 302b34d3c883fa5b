"""Publishes that wait for tx.commit are bounded: of a connection, of a user, and of all; and they are counted."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq import methods
from pandomq.broker.limits import BrokerLimits
from pandomq.broker.publishing.uncommitted import OVERHEAD_BYTES
from pandomq.properties import Properties, encode_header
from tests.unit.broker.conversation import Peer, World

BODY = b"x" * 1000
SIZE = len(encode_header(len(BODY), Properties())) + len(BODY) + OVERHEAD_BYTES


def world_with(**limits: Any) -> World:
    world = World(limits=BrokerLimits(**limits))
    for user in ("ann", "bob"):
        world.admit(user)
    return world


def transacted(world: World, user: str = "guest", channels: int = 1) -> Peer:
    peer = world.connect(user=user)
    for channel in range(1, channels + 1):
        peer.call(methods.ChannelOpen(), expect=methods.ChannelOpenOk, channel=channel)
        peer.call(methods.TxSelect(), expect=methods.TxSelectOk, channel=channel)
    return peer


def publish(peer: Peer, channel: int = 1) -> None:
    peer.publish("amq.fanout", "", BODY, channel=channel)


def closed(peer: Peer) -> list[tuple[int, int]]:
    """Channels that were closed, and why."""
    heard = [(one.channel, one.method) for one in peer.hear()]
    closes = [(channel, method) for channel, method in heard if isinstance(method, methods.ChannelClose)]
    assert all((close.failed_class_id, close.failed_method_id) == (60, 40) for _, close in closes)
    return [(channel, close.reply_code) for channel, close in closes]


def test_channels_of_one_connection_share_a_bound() -> None:
    world = world_with(transaction_per_connection_bytes_max=3 * SIZE)
    peer = transacted(world, channels=8)
    for channel in range(1, 4):
        publish(peer, channel)
    assert closed(peer) == []
    publish(peer, 4)
    assert closed(peer) == [(4, 406)]
    assert world.broker.uncommitted.size_bytes == 3 * SIZE
    # Another connection has a bound of its own.
    publish(other := transacted(world))
    assert closed(other) == []


@pytest.mark.proves("R38")
def test_connections_of_one_user_share_a_bound() -> None:
    world = world_with(transaction_per_user_bytes_max=3 * SIZE)
    peers = [transacted(world, "ann") for _ in range(4)]
    for peer in peers:
        publish(peer)
    assert [closed(peer) for peer in peers] == [[], [], [], [(1, 406)]]
    publish(bystander := transacted(world, "bob"))
    assert closed(bystander) == []
    bystander.call(methods.TxCommit(), expect=methods.TxCommitOk)


def test_if_all_have_too_much_the_connection_with_the_most_loses_it() -> None:
    world = world_with(transactions_bytes_max=5 * SIZE)
    greedy, modest = transacted(world, "ann", channels=3), transacted(world, "bob")
    for channel in (1, 1, 2, 2):
        publish(greedy, channel)
    publish(modest)
    assert closed(greedy) == []
    publish(modest)
    assert closed(greedy) == [(1, 406), (2, 406)]
    assert closed(modest) == []
    assert world.broker.uncommitted.size_bytes == 2 * SIZE
    for _ in range(3):
        publish(modest)
    publish(modest)
    assert closed(modest) == [(1, 406)]
    assert world.broker.uncommitted.size_bytes == 0


@pytest.mark.parametrize("end", ["commit", "rollback", "close", "disconnect", "fault"])
def test_however_a_transaction_ends_its_room_is_given_back(end: str) -> None:
    world = world_with()
    peer = transacted(world, channels=2)
    for channel in (1, 2):
        publish(peer, channel)
    assert world.broker.uncommitted.size_bytes == 2 * SIZE
    if end == "disconnect":
        peer.leave()
        assert world.broker.uncommitted.size_bytes == 0
        return
    ends = {
        "commit": methods.TxCommit(),
        "rollback": methods.TxRollback(),
        "close": methods.ChannelClose(200, "", 0, 0),
        "fault": methods.QueueDeclare("missing", passive=True),
    }
    peer.send(ends[end], channel=2)
    assert world.broker.uncommitted.size_bytes == SIZE
    peer.send(ends[end], channel=1)
    assert world.broker.uncommitted.size_bytes == 0


def test_settlements_of_nothing_take_no_room() -> None:
    world = world_with()
    peer = transacted(world)
    for _ in range(10):
        peer.say(methods.BasicAck(0, True))
    peer.flush()
    transaction = peer.client.channels[1].transaction
    assert transaction is not None
    assert not transaction._settlements


@pytest.mark.proves("R38")
def test_many_small_connections_of_one_user_do_not_cost_another_user_its_transaction() -> None:
    world = world_with(transactions_bytes_max=6 * SIZE)
    large = transacted(world, "bob")
    for _ in range(2):
        publish(large)
    small = [transacted(world, "ann") for _ in range(5)]
    for peer in small:
        publish(peer)
    assert closed(large) == []
    assert sum(len(closed(peer)) for peer in small) == 1
    large.call(methods.TxCommit(), expect=methods.TxCommitOk)
