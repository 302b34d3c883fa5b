"""The behaviour of a full queue."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq.kernel import constants
from tests.unit.kernel.frames import PERSISTENT, headers, properties
from tests.unit.kernel.world import World


def test_the_oldest_make_room(world: World) -> None:
    queue = world.queue(length_max=2, dead_letters=True)
    world.put(queue, b"1", b"2", b"3", b"4")
    assert world.ready(queue) == [b"3", b"4"]
    assert world.take_dead() == [(0, b"1", constants.MAXLEN, 0), (0, b"2", constants.MAXLEN, 0)]
    assert queue.dropped == 2


def test_a_ring_without_dead_letters_only_counts(world: World) -> None:
    queue = world.queue(length_max=1)
    world.put(queue, b"1", b"2")
    assert world.engine.dead == []
    assert queue.dropped == 1


def test_bodies_count_against_the_limit_in_bytes(world: World) -> None:
    queue = world.queue(bytes_max=10)
    lengths = []
    for size in (5, 5, 5, 20, 3):
        world.put(queue, b"x" * size)
        lengths.append(queue.ready_count)
    assert lengths == [1, 2, 2, 0, 1], "as RabbitMQ: one that is too large drives out all, itself included"


def test_the_head_goes_even_if_its_priority_is_high(world: World) -> None:
    queue = world.queue(length_max=3, priority_max=5)
    for priority in (1, 3, 2, 1, 4, 0, 5):
        world.put(queue, b"%d" % priority, props=properties(priority=priority))
    assert world.ready(queue) == [b"1", b"1", b"0"], "as RabbitMQ does it"


def test_nothing_is_dropped_that_a_consumer_can_take(world: World) -> None:
    channel = world.channel()
    queue = world.queue(length_max=1)
    world.consumer(channel, queue, no_ack=True)
    world.put(queue, b"1", b"2", b"3")
    assert queue.dropped == 0
    assert world.bodies(channel.session) == [b"1", b"2", b"3"]


def test_a_limit_of_zero_keeps_nothing(world: World) -> None:
    queue = world.queue(length_max=0)
    world.put(queue, b"1")
    assert (queue.ready_count, queue.dropped, world.engine.held_messages) == (0, 1, 0)


def test_unacked_messages_do_not_count(world: World) -> None:
    channel = world.channel()
    queue = world.queue(length_max=1)
    world.consumer(channel, queue, prefetch=3)
    world.put(queue, b"1", b"2", b"3", b"4")
    assert (queue.dropped, queue.ready_count, queue.unacked_count) == (0, 1, 3)


def test_a_shorter_limit_holds_from_the_next_deliver_on(world: World) -> None:
    queue = world.queue()
    world.put(queue, b"1", b"2", b"3")
    queue.configure(length_max=1)
    world.end_batch()
    assert world.ready(queue) == [b"3"]


def test_requeued_messages_may_overflow_the_queue(world: World) -> None:
    channel = world.channel()
    queue = world.queue(length_max=1)
    consumer = world.consumer(channel, queue, prefetch=2)
    world.put(queue, b"1", b"2", b"3")
    world.end_batch()
    consumer.cancel()
    channel.recover(world.now_ms)
    world.end_batch()
    assert world.ready(queue) == [b"3"]
    assert queue.dropped == 2


@pytest.mark.parametrize("overflow", [1, 2])
def test_a_full_queue_may_refuse(world: World, overflow: int) -> None:
    queue = world.queue(length_max=2, overflow=overflow, dead_letters=True)
    assert world.put(queue, b"1", b"2")
    assert not world.put(queue, b"3")
    assert world.ready(queue) == [b"1", b"2"]
    assert world.take_dead() == ([(0, b"3", constants.MAXLEN, 0)] if overflow == 2 else [])


def test_a_refusing_queue_lets_consumers_take_first(world: World) -> None:
    channel = world.channel()
    queue = world.queue(length_max=1, overflow=1)
    world.consumer(channel, queue, no_ack=True)
    assert world.put(queue, b"1", b"2", b"3")
    assert world.bodies(channel.session) == [b"1", b"2", b"3"]


def test_a_refusing_queue_of_length_zero_refuses_even_with_a_consumer(world: World) -> None:
    queue = world.queue(length_max=0, overflow=1)
    world.consumer(world.channel(), queue, no_ack=True)
    assert not world.put(queue, b"1")


def test_the_refusal_of_one_queue_does_not_keep_the_message_from_the_others(world: World) -> None:
    full, willing = world.queue(length_max=0, overflow=1, logged=True), world.queue(logged=True)
    message = world.message(b"1", PERSISTENT)
    assert not world.engine.enqueue(None, message, (full, willing), 0, world.now_ms)
    assert (full.ready_count, willing.ready_count) == (0, 1)
    entry = world.end_batch()
    assert entry is not None
    assert entry.count(b"\x02\x00\x00\x00\x00\x00\x00\x00") > 0, "the willing queue's id is logged"
    assert full.next_sequence == 1


def test_a_queue_that_only_rejects_new_ones_keeps_what_it_has(world: World) -> None:
    queue = world.queue()
    world.put(queue, b"1", b"2")
    queue.configure(length_max=1, overflow=1)
    world.end_batch()
    assert queue.ready_count == 2
    assert not world.put(queue, b"3")


def _leave_unseen(world: World, way: str) -> tuple[Any, Any]:
    """A queue that its first message leaves, undelivered, and a consumer that comes then; nothing is committed yet."""
    ways: dict[str, dict[str, Any]] = {
        "limit": {"length_max": 1},
        "time": {"ttl_ms": 10},
        "key": {"last_value_key": b"k"},
        "purge": {},
    }
    queue = world.queue(logged=True, **ways[way])
    props = properties(table=headers(k=b"x"), delivery_mode=2) if way == "key" else PERSISTENT
    world.put(queue, b"1", props=props)
    world.end_batch()
    if way == "time":
        world.now_ms += 11
        queue.expire(world.now_ms)
    elif way == "purge":
        queue.purge()
    world.put(queue, b"2", props=props)
    channel = world.channel()
    world.consumer(channel, queue, no_ack=True)
    return queue, channel.session


@pytest.mark.parametrize("way", ["limit", "time", "key", "purge"])
def test_messages_behind_one_that_left_undelivered_wait_for_the_log(world: World, way: str) -> None:
    """Were the log to lose that, the message would come back, and be delivered after them."""
    queue, session = _leave_unseen(world, way)
    world.end_batch(commit=False)
    assert session.pending_bytes == 0
    assert queue.head_missing, "basic.get waits as well"
    assert queue.take(world.channel(number=2), True, world.now_ms) is None
    world.engine.committed(world.index)
    world.end_batch(commit=False)
    assert world.bodies(session) == [b"2"]
    assert not queue.head_missing


def test_messages_that_are_not_logged_are_delivered_without_waiting(world: World) -> None:
    queue = world.queue(logged=True, length_max=1)
    world.put(queue, b"1", b"2")
    channel = world.channel()
    world.consumer(channel, queue, no_ack=True)
    world.end_batch(commit=False)
    assert channel.session.pending_bytes > 0
