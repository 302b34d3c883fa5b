"""Sequence numbers at the borders where a narrower number, or a sign, would show."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.broker.log.revival import Revival
from pandomq.broker.log.snapshot import Snapshot
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World
from tests.unit.broker.durable_view import durable_view
from tests.unit.broker.test_snapshot import no_pages

BORDERS = (2**31, 2**32, 2**53, 2**63, 2**64 - 10)
"""The last is as high as numbers go; a queue gets there after fifty thousand years of ten million messages a second."""
COUNT = 8

pytestmark = pytest.mark.parametrize("border", BORDERS)


def at_border(border: int, **arguments: object) -> Peer:
    """A client of a queue whose next number is a few below."""
    peer = World().peer()
    peer.declare("q", durable=True, arguments=arguments)
    peer.world.broker.state.vhosts["/"].queues["q"].kernel.next_sequence = border - COUNT // 2
    return peer


def sequences(world: World) -> list[int]:
    return [row[0] for row in world.broker.state.vhosts["/"].queues["q"].kernel.snapshot()]


def publish(peer: Peer, *, persistent: bool = True) -> list[bytes]:
    bodies = [b"%d" % number for number in range(COUNT)]
    for body in bodies:
        peer.publish("", "q", body, Properties(delivery_mode=2 if persistent else 1))
    return bodies


def drained(world: World) -> list[bytes]:
    peer = world.peer()
    got = [peer.get() for _ in range(COUNT + 1)]
    return [found.body for found in got if found is not None]


@pytest.mark.proves("L2")
def test_order_and_numbers_go_on(border: int) -> None:
    peer = at_border(border)
    bodies = publish(peer)
    first = border - COUNT // 2
    assert sequences(peer.world) == list(range(first, first + COUNT))
    assert drained(peer.world) == bodies


@pytest.mark.proves("L2")
def test_messages_that_come_back_take_their_old_places(border: int) -> None:
    peer = at_border(border)
    bodies = publish(peer)
    consumer = peer.world.peer()
    for _ in range(COUNT):
        consumer.get(no_ack=False)
    # Every second one is acked, the others come back out of order.
    for tag in range(1, COUNT + 1, 2):
        consumer.send(methods.BasicAck(tag))
    for tag in range(COUNT, 0, -2):
        consumer.send(methods.BasicReject(tag, True))
    assert drained(peer.world) == bodies[1::2]


@pytest.mark.proves("L2")
def test_the_log_and_snapshots_hold_them(border: int) -> None:
    peer = at_border(border)
    bodies = publish(peer)
    consumer = peer.world.peer()
    for _ in range(3):
        consumer.get()
    consumer.leave()
    peer.leave()
    world = peer.world
    replayed = world.replayed()
    assert durable_view(replayed.broker) == durable_view(world.broker)
    revived = World()
    revival = Revival(revived.broker, no_pages)
    for piece in Snapshot(world.broker, exact=True).pieces(64):
        revival.take(piece)
    revival.finish(world.now_ms)
    assert sequences(revived) == sequences(replayed) == sequences(world)
    assert drained(revived) == drained(replayed) == bodies[3:]


@pytest.mark.proves("L2")
@pytest.mark.parametrize("argument", ["x-max-priority", "x-max-length", "x-last-value-key", "x-message-ttl"])
def test_queues_of_all_kinds_keep_their_order_at_the_border(border: int, argument: str) -> None:
    value: object = "key" if argument == "x-last-value-key" else 1000
    peer = at_border(border, **{argument: 5 if argument == "x-max-priority" else value})
    bodies = publish(peer, persistent=False)
    assert drained(peer.world) == bodies
