"""When messages expire, and how the caller learns when to look."""

from __future__ import annotations

from pandomq.kernel import constants
from tests.unit.kernel.frames import properties
from tests.unit.kernel.world import World


def waiting(world: World) -> list[int]:
    numbers = [queue.owner for queue in world.engine.waiting_for_time]
    world.engine.waiting_for_time.clear()
    return numbers


def expiring(milliseconds: int) -> bytes:
    return properties(expiration=b"%d" % milliseconds)


def test_the_shorter_of_both_times_counts(world: World) -> None:
    queue = world.queue(ttl_ms=50)
    world.put(queue, b"a", props=expiring(20))
    world.put(queue, b"b", props=expiring(80))
    world.put(queue, b"c")
    assert [row[2] for row in queue.snapshot()] == [1020, 1050, 1050]


def test_without_a_time_nothing_expires(world: World) -> None:
    queue = world.queue()
    world.put(queue, b"a")
    world.now_ms += 10**12
    queue.expire(world.now_ms)
    world.end_batch()
    assert queue.ready_count == 1
    assert queue.next_deadline_ms == constants.NEVER_MS
    assert waiting(world) == []


def test_expired_messages_die_at_their_deadline(world: World) -> None:
    queue = world.queue(ttl_ms=50, dead_letters=True)
    world.put(queue, b"a", b"b")
    queue.expire(1049)
    assert queue.ready_count == 2
    queue.expire(1050)
    assert world.take_dead() == [(0, b"a", constants.EXPIRED, 0), (0, b"b", constants.EXPIRED, 0)]
    assert (queue.ready_count, queue.dropped, world.engine.held_messages) == (0, 2, 0)


def test_messages_expire_at_the_head_only(world: World) -> None:
    queue = world.queue()
    world.put(queue, b"long", props=expiring(100))
    world.put(queue, b"short", props=expiring(10))
    queue.expire(1050)
    assert world.ready(queue) == [b"long", b"short"], "as in RabbitMQ"
    queue.expire(1100)
    assert world.ready(queue) == []


def test_each_priority_has_its_own_head(world: World) -> None:
    queue = world.queue(priority_max=2)
    world.put(queue, b"high", props=properties(priority=2, expiration=b"100"))
    world.put(queue, b"low", props=expiring(10))
    assert queue.next_deadline_ms == 1010
    queue.expire(1050)
    assert world.ready(queue) == [b"high"]


def test_a_late_message_is_not_delivered(world: World) -> None:
    channel = world.channel()
    queue = world.queue(ttl_ms=10, dead_letters=True)
    world.put(queue, b"a")
    world.now_ms = 1011
    world.consumer(channel, queue, no_ack=True)
    assert world.bodies(channel.session) == []
    assert len(world.take_dead()) == 1


def test_a_time_to_live_of_zero_means_now_or_never(world: World) -> None:
    channel = world.channel()
    queue = world.queue(ttl_ms=0, dead_letters=True)
    world.put(queue, b"nobody is there")
    world.end_batch()
    assert [row[1] for row in world.take_dead()] == [b"nobody is there"]
    world.consumer(channel, queue, no_ack=True)
    world.put(queue, b"at once")
    assert world.bodies(channel.session) == [b"at once"]
    assert world.take_dead() == []


def test_basic_get_does_not_give_what_has_expired(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.put(queue, b"a", props=expiring(5))
    world.put(queue, b"b")
    got = queue.take(channel, True, 1005)
    assert got[2].body == b"b"
    assert queue.take(channel, True, 1005) is None


def test_a_deadline_is_kept_when_a_message_comes_back(world: World) -> None:
    channel = world.channel()
    queue = world.queue(ttl_ms=10)
    consumer = world.consumer(channel, queue)
    world.put(queue, b"a")
    world.end_batch()
    world.now_ms = 1009
    consumer.cancel()
    channel.recover(world.now_ms)
    assert queue.next_deadline_ms == 1010


def test_a_queue_with_a_deadline_asks_for_a_timer_once(world: World) -> None:
    queue = world.queue(ttl_ms=10)
    world.put(queue, b"a")
    world.end_batch()
    assert waiting(world) == [0]
    queue.timer_armed = True
    world.put(queue, b"b")
    world.end_batch()
    assert waiting(world) == []
    queue.timer_armed = False
    queue.expire(1010)
    world.put(queue, b"c")
    world.end_batch()
    assert waiting(world) == [0]


def test_a_timer_for_a_later_time_is_not_enough(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.put(queue, b"long", props=expiring(1000))
    world.put(queue, b"short", props=expiring(10))
    world.end_batch()
    assert waiting(world) == [0]
    queue.timer_armed = True
    assert queue.take(channel, True, 1000)[2].body == b"long"
    assert waiting(world) == [0]
    assert not queue.timer_armed
    assert queue.next_deadline_ms == 1010


def test_expiry_is_logged(world: World) -> None:
    queue = world.queue(ttl_ms=10, logged=True)
    world.put(queue, b"a", props=properties(delivery_mode=2))
    assert world.end_batch() is not None
    world.now_ms = 1010
    queue.expire(world.now_ms)
    assert world.end_batch() is not None
