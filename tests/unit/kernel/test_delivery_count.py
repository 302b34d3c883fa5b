"""How often a message may come back, and how its receiver can tell."""

from __future__ import annotations

import pytest

from pandomq.kernel import constants
from tests.unit.kernel.frames import nack, reject
from tests.unit.kernel.world import World


def test_a_message_beyond_the_delivery_limit_is_dead_lettered(world: World) -> None:
    channel = world.channel()
    queue = world.queue(delivery_limit=2, dead_letters=True)
    world.consumer(channel, queue)
    world.put(queue, b"poison")
    for round_ in range(3):
        (event,) = world.run(channel.session)
        assert event.redelivered == (round_ > 0)
        world.feed(channel.session, nack(event.tag, False, True))
    assert world.run(channel.session) == []
    assert world.take_dead() == [(0, b"poison", constants.DELIVERY_LIMIT, 3)]
    assert (queue.dropped, queue.unacked_count, world.engine.held_messages) == (1, 0, 0)


def test_every_kind_of_requeue_counts_towards_the_delivery_limit(world: World) -> None:
    queue = world.queue(delivery_limit=3)
    world.put(queue, b"x")
    for way in ("nack", "reject", "recover", "close", "session close"):
        assert queue.ready_count == (way != "session close")
        channel = world.channel()
        world.consumer(channel, queue)
        events = world.run(channel.session)
        if way == "nack":
            world.feed(channel.session, nack(1, True, True))
        elif way == "reject":
            world.feed(channel.session, reject(1, True))
        elif way == "recover":
            channel.recover(world.now_ms)
        channel.close(world.now_ms) if way != "session close" else channel.session.close(world.now_ms)
        assert len(events) == (way != "session close")
    assert queue.dropped == 1


def test_without_a_limit_it_comes_back_forever(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.consumer(channel, queue)
    world.put(queue, b"x")
    for _ in range(50):
        (event,) = world.run(channel.session)
        world.feed(channel.session, reject(event.tag, True))
    assert queue.snapshot()[0][3:5] == (50, True)
    assert (queue.delivered, queue.redelivered, world.engine.redelivered) == (50, 49, 49)


@pytest.mark.parametrize("get", [False, True])
def test_the_receiver_gets_the_delivery_count(world: World, get: bool) -> None:
    channel = world.channel()
    queue = world.queue(counts_deliveries=True)
    world.put(queue, b"x")
    bodies = []
    consumer = None if get else world.consumer(channel, queue)
    for _ in range(3):
        if get:
            bodies.append(queue.take(channel, False, world.now_ms)[2].body)
        else:
            bodies += world.bodies(channel.session)
        world.feed(channel.session, nack(0, True, True))
    assert bodies == [b"x", b"x#1", b"x#2"], "the copy is the hook's"
    assert consumer is None or consumer.delivered == 3
    assert world.ready(queue) == [b"x"]


def test_a_reject_without_requeue_is_a_death(world: World) -> None:
    channel = world.channel()
    queue = world.queue(dead_letters=True)
    world.consumer(channel, queue)
    world.put(queue, b"1", b"2", b"3")
    world.run(channel.session)
    world.feed(channel.session, reject(1, False) + nack(3, True, False))
    reason = constants.REJECTED
    assert world.take_dead() == [(0, b"1", reason, 0), (0, b"2", reason, 0), (0, b"3", reason, 0)]
    assert world.engine.acked == 0
    assert world.engine.held_messages == 0
