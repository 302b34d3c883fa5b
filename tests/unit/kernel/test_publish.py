"""From a run of publishes into queues: remembered plans, the slow path, and what is held."""

from __future__ import annotations

from pandomq.kernel import constants
from tests.unit.kernel.frames import properties, publish
from tests.unit.kernel.world import World


def test_the_hook_is_asked_once_per_route(world: World) -> None:
    channel = world.channel()
    queue = world.queue("k")
    world.feed(channel.session, publish(b"k", b"1") + publish(b"k", b"2"))
    world.feed(channel.session, publish(b"k", b"3"))
    assert [event[0] for event in world.events] == ["publish", "accepted"]
    assert world.ready(queue) == [b"1", b"2", b"3"]
    assert (world.engine.published, queue.published) == (3, 3)


def test_a_plan_that_no_longer_holds_is_not_used(world: World) -> None:
    channel = world.channel()
    one = world.queue("k")
    world.feed(channel.session, publish(b"k", b"1"))
    two = world.queue("k")
    world.feed(channel.session, publish(b"k", b"2"))
    assert (world.ready(one), world.ready(two)) == ([b"1", b"2"], [b"2"])


def test_special_messages_always_go_to_the_hook(world: World) -> None:
    channel = world.channel()
    world.queue("k")
    for props in (properties(user_id=b"u"), properties(expiration=b"x"), b"\0\1"):
        world.feed(channel.session, publish(b"k", b"1") + publish(b"k", b"2", props))
    assert [event[-3] for event in world.events if event[0] == "publish"] == [
        0,
        constants.SPECIAL_USER_ID,
        constants.SPECIAL_EXPIRATION,
        constants.SPECIAL_MALFORMED,
    ]


def test_mandatory_and_nowhere_to_go(world: World) -> None:
    channel = world.channel()
    world.feed(channel.session, publish(b"k", b"1", bits=1) + publish(b"k", b"2") + publish(b"k", b"3", bits=1))
    assert world.engine.unroutable == 3
    assert [(c.owner, message.body, flags) for c, message, flags in world.engine.returned] == [
        (0, b"1", 1),
        (0, b"3", 1),
    ]


def test_routes_start_anew_when_they_are_full(world: World) -> None:
    channel = world.channel()
    for number in range(20):
        world.feed(channel.session, publish(b"%d" % number, b"x"))
        assert len(world.routes) == number % 8 + 1
    world.routes.clear()
    assert len(world.routes) == 0


def test_a_message_in_many_queues_is_held_once(world: World) -> None:
    channel = world.channel()
    queues = [world.queue("k") for _ in range(5)]
    world.feed(channel.session, publish(b"k", b"x" * 100))
    assert (world.engine.held_messages, world.engine.held_bytes) == (1, 100 + 14)
    world.consumer(channel, queues[0])
    world.end_batch()
    for queue in queues[1:]:
        assert queue.purge() == 1
    assert world.engine.held_messages == 1
    channel.recover(world.now_ms)
    assert queues[0].delete() == 1
    assert (world.engine.held_messages, world.engine.held_bytes) == (0, 0)


def test_the_term_is_stamped_on_each_message(world: World) -> None:
    queue = world.queue()
    world.put(queue, b"1")
    world.engine.term = 7
    world.put(queue, b"2")
    assert [(row[0], row[1]) for row in queue.snapshot()] == [(1, 0), (2, 7)]
