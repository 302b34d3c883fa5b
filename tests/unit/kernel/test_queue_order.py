"""In which order messages leave, also those that come back."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis
import hypothesis.strategies as st

from tests.unit.kernel.frames import headers, properties
from tests.unit.kernel.world import World

HIGH, LOW = properties(priority=4), properties(priority=1)


def test_first_in_first_out(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.consumer(channel, queue, no_ack=True)
    bodies = [b"%d" % number for number in range(100)]
    world.put(queue, *bodies)
    assert world.bodies(channel.session) == bodies


def test_higher_priorities_come_first_and_keep_their_order(world: World) -> None:
    queue = world.queue(priority_max=4)
    for body, props in ((b"low 1", LOW), (b"high 1", HIGH), (b"none", b"\0\0"), (b"low 2", LOW), (b"high 2", HIGH)):
        world.put(queue, body, props=props)
    assert world.ready(queue) == [b"high 1", b"high 2", b"low 1", b"low 2", b"none"]


def test_priorities_above_the_highest_count_as_the_highest(world: World) -> None:
    queue = world.queue(priority_max=3)
    for priority in (1, 9, 3, 200, 2):
        world.put(queue, b"%d" % priority, props=properties(priority=priority))
    assert world.ready(queue) == [b"9", b"3", b"200", b"2", b"1"]


def test_without_priorities_they_do_not_matter(world: World) -> None:
    queue = world.queue()
    world.put(queue, b"low", props=LOW)
    world.put(queue, b"high", props=HIGH)
    assert world.ready(queue) == [b"low", b"high"]


@hypothesis.given(
    priorities=st.lists(st.integers(0, 6), min_size=1, max_size=30),
    prefetch=st.integers(1, 30),
    returned=st.sets(st.integers(1, 30)),
    later=st.integers(0, 10),
)
def test_requeued_messages_take_their_places_again(
    kernel_world: Callable[[], World], priorities: list[int], prefetch: int, returned: set[int], later: int
) -> None:
    world = kernel_world()
    queue = world.queue(priority_max=5)
    channel = world.channel()
    consumer = world.consumer(channel, queue, prefetch=prefetch)
    for number, priority in enumerate(priorities):
        world.put(queue, b"%d" % number, props=properties(priority=priority))
    world.end_batch()
    channel.hold()
    for number in range(later):
        world.put(queue, b"%d" % (len(priorities) + number), props=properties(priority=number % 7))
    for tag in channel.outstanding(0, True):
        requeue = tag in returned
        world.engine.settle_one(channel, 120 if requeue else 80, tag, False, requeue, world.now_ms)
    consumer.cancel()
    everything = [*priorities, *(number % 7 for number in range(later))]
    rows = queue.snapshot()
    numbers = [int(row[5].body) for row in rows]
    assert numbers == sorted(numbers, key=lambda number: (-min(everything[number], 5), number))
    assert all(row[4] == (row[3] == 1) for row in rows), "redelivered and counted, or neither"


def test_many_come_back_at_once(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.consumer(channel, queue, prefetch=60_000)
    for _ in range(20):
        world.put(queue, *(b"x" for _ in range(5_000)))
        world.end_batch()
        channel.session.take()
    # From the back, so that each has the longest way to its place.
    for tag in reversed(channel.outstanding(0, True)):
        world.engine.settle_one(channel, 120, tag, False, True, world.now_ms)
    channel.hold()
    world.end_batch()
    assert [row[0] for row in queue.snapshot()] == list(range(1, 100_001))


def test_withdrawing_from_the_middle(world: World) -> None:
    queue = world.queue()
    world.put(queue, *(b"%d" % number for number in range(1, 201)))
    for sequence in range(2, 200):
        assert world.queues[0].withdraw(sequence).body == b"%d" % sequence
        assert queue.withdraw(sequence) is None
    assert world.ready(queue) == [b"1", b"200"]
    assert queue.withdraw(1).body == b"1"
    world.put(queue, b"201")
    assert world.ready(queue) == [b"200", b"201"]
    assert (queue.ready_count, queue.ready_bytes, world.engine.held_messages) == (2, 6, 2)


KEY_A, KEY_B = properties(table=headers(k=b"a")), properties(table=headers(k=b"b"))


def test_the_last_value_replaces_the_one_before(world: World) -> None:
    queue = world.queue(last_value_key=b"k")
    world.put(queue, b"a1", props=KEY_A)
    world.put(queue, b"b1", props=KEY_B)
    world.put(queue, b"other", b"other")
    world.put(queue, b"a2", props=KEY_A)
    assert world.ready(queue) == [b"b1", b"other", b"other", b"a2"]
    assert queue.dropped == 1
    assert world.engine.held_messages == 4


def test_an_old_value_does_not_come_back_over_a_newer_one(world: World) -> None:
    channel = world.channel()
    queue = world.queue(last_value_key=b"k")
    world.consumer(channel, queue, prefetch=1)
    world.put(queue, b"a1", props=KEY_A)
    world.end_batch()
    world.put(queue, b"a2", props=KEY_A)
    channel.recover(world.now_ms)
    assert world.ready(queue) == [b"a2"]
    assert world.bodies(channel.session) == [b"a1", b"a2"]


def test_the_newest_value_comes_back(world: World) -> None:
    channel = world.channel()
    queue = world.queue(last_value_key=b"k")
    consumer = world.consumer(channel, queue)
    world.put(queue, b"a1", props=KEY_A)
    world.end_batch()
    world.put(queue, b"a2", props=KEY_A)
    world.end_batch()
    assert channel.unacked_count == 2
    consumer.cancel()
    channel.recover(world.now_ms)
    assert world.ready(queue) == [b"a2"]


def test_a_key_is_forgotten_with_its_message(world: World) -> None:
    channel = world.channel()
    queue = world.queue(last_value_key=b"k")
    world.put(queue, b"a1", props=KEY_A)
    world.put(queue, b"a2", props=KEY_A)
    world.consumer(channel, queue)
    world.end_batch()
    world.put(queue, b"a3", props=KEY_A)
    world.end_batch()
    world.engine.settle_one(channel, 80, 2, False, False, world.now_ms)
    channel.hold()
    world.engine.settle_one(channel, 120, 1, False, True, world.now_ms)
    assert world.ready(queue) == [b"a2"], "the newer one is gone for good, so this is the last value again"


def test_many_values_of_few_keys_leave_no_holes_behind(world: World) -> None:
    queue = world.queue(last_value_key=b"k")
    for number in range(10_000):
        world.put(queue, b"%d" % number, props=(KEY_A, KEY_B)[number % 2])
    assert world.ready(queue) == [b"9998", b"9999"]


def test_a_message_that_a_ready_consumer_takes_waits_for_no_other(world: World) -> None:
    channel = world.channel()
    first, second = world.queue(), world.queue()
    for queue in (first, second):
        world.consumer(channel, queue)
    for body, queue in ((b"1", first), (b"2", second), (b"3", first)):
        world.put(queue, body)
        assert world.ready(queue) == []
    assert channel.unacked_count == 3
