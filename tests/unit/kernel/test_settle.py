"""Delivery tags and what a settlement concerns."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis
import hypothesis.strategies as st
import pytest

from pandomq.kernel import constants
from tests.unit.kernel.frames import ack, nack, publish
from tests.unit.kernel.world import World


def delivered(world: World, count: int) -> tuple[object, object]:
    """A channel with so many unacked messages, and their queue."""
    channel = world.channel()
    queue = world.queue()
    world.consumer(channel, queue)
    world.put(queue, *(b"%d" % number for number in range(1, count + 1)))
    world.run(channel.session)
    return channel, queue


@hypothesis.given(
    st.integers(1, 40),
    st.lists(st.tuples(st.integers(0, 45), st.booleans()), max_size=15),
)
def test_against_a_set_of_tags(
    kernel_world: Callable[[], World], count: int, settlements: list[tuple[int, bool]]
) -> None:
    world = kernel_world()
    channel, queue = delivered(world, count)
    outstanding = set(range(1, count + 1))
    for tag, multiple in settlements:
        known = tag in outstanding or (multiple and tag == 0)
        concerned = {one for one in outstanding if tag in (one, 0) or (multiple and one <= tag)} if known else set()
        assert channel.outstanding(tag, multiple) == sorted(concerned)  # type: ignore[attr-defined]
        world.events.clear()
        world.engine.settle_one(channel, 80, tag, multiple, False, world.now_ms)
        assert world.events == ([] if known else [("unknown tag", 0, 80, tag)])
        outstanding -= concerned
        assert channel.outstanding(0, True) == sorted(outstanding)  # type: ignore[attr-defined]
    assert world.engine.held_messages == len(outstanding)
    assert world.engine.acked == count - len(outstanding)
    assert queue.unacked_count == len(outstanding)  # type: ignore[attr-defined]


@pytest.mark.parametrize("tag", [1, 4, 9])
def test_multiple_names_a_tag_that_must_be_outstanding(world: World, tag: int) -> None:
    channel, _ = delivered(world, 5)
    world.feed(world.sessions[0], ack(1) + ack(4) + ack(tag, True) + ack(2))
    assert world.events == [("unknown tag", 0, 80, tag)], "as in RabbitMQ; then the channel is shut"
    assert channel.outstanding(0, True) == [2, 3, 5]  # type: ignore[attr-defined]


def test_settling_all_of_no_deliveries_is_no_error(world: World) -> None:
    channel = world.channel()
    world.feed(channel.session, ack(0, True) + nack(0, True, True))
    assert world.events == []
    world.feed(channel.session, ack(0))
    assert world.events == [("unknown tag", 0, 80, 0)]


def test_deliveries_without_ack_use_up_tags_too(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.put(queue, *(b"x" for _ in range(6)))
    tags = [queue.take(channel, no_ack, world.now_ms)[0] for no_ack in (True, False, True, False, False, True)]
    assert tags == [1, 2, 3, 4, 5, 6]
    assert channel.outstanding(0, True) == [2, 4, 5]
    assert channel.outstanding(4, True) == [2, 4]
    assert channel.outstanding(3, True) == []
    world.feed(channel.session, ack(4, True))
    assert channel.outstanding(0, True) == [5]


def test_one_old_message_among_many(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.consumer(channel, queue)
    world.put(queue, b"old")
    tag = world.run(channel.session)[0].tag
    for _ in range(100):
        world.now_ms += 1
        world.put(queue, *(b"x" for _ in range(50)))
        for event in world.run(channel.session):
            world.feed(channel.session, ack(event.tag))
    assert channel.outstanding(0, True) == [tag]
    assert channel.oldest_delivery_ms == 1000
    world.feed(channel.session, ack(tag))
    assert channel.oldest_delivery_ms == constants.NEVER_MS


def test_basic_get_returns_the_number_of_messages_left(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.put(queue, b"1", b"2")
    tag, redelivered, message, left = queue.take(channel, False, world.now_ms)
    assert (tag, redelivered, message.body, left) == (1, False, b"1", 1)
    channel.recover(world.now_ms)
    assert queue.take(channel, False, world.now_ms)[:2] == (2, True)


def test_in_a_transaction_the_hooks_decide(world: World) -> None:
    channel = world.channel(mode=constants.TRANSACTION)
    world.queue("k")
    world.feed(channel.session, publish(b"k", b"x") + ack(5) + nack(6, True, True))
    assert [event[0] for event in world.events] == ["publish", "settle", "settle"]
    assert world.events[1:] == [("settle", 0, 80, 5, False, False), ("settle", 0, 120, 6, True, True)]


def test_methods_on_a_channel_that_is_not_open_are_reported(world: World) -> None:
    channel = world.channel()
    queue = world.queue("k")
    world.feed(channel.session, ack(1, channel=7) + ack(1))
    assert world.events == [("unknown channel", 0, 7, 60, 80)], "the rest of the run is dropped"
    world.feed(channel.session, publish(b"k", b"1") + publish(b"k", b"2", channel=7) + publish(b"k", b"3"))
    assert world.events[-1] == ("unknown channel", 0, 7, 60, 40)
    assert world.ready(queue) == [b"1"]


def test_publishes_on_a_closed_channel_are_skipped(world: World) -> None:
    channel = world.channel()
    world.channel(channel.session, 2)
    queue = world.queue("k")
    channel.open = False
    world.feed(channel.session, publish(b"k", b"1") + publish(b"k", b"2", channel=2) + publish(b"k", b"3"))
    assert world.ready(queue) == [b"2"]
    assert world.engine.published == 1
