"""The consumer that gets the next message, the consumers that have to rest, and the events that wake them."""

from __future__ import annotations

from typing import Any

from tests.unit.kernel.frames import ack, nack
from tests.unit.kernel.world import World


def receivers(world: World, session: Any) -> list[int]:
    """The consumers that got something, in order."""
    return [int(event.consumer[1:]) for event in world.run(session)]


def test_equals_take_turns(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    for _ in range(3):
        world.consumer(channel, queue, no_ack=True)
    world.put(queue, *(b"x" for _ in range(7)))
    assert receivers(world, channel.session) == [0, 1, 2, 0, 1, 2, 0]
    world.put(queue, b"x", b"x")
    assert receivers(world, channel.session) == [1, 2]


def test_the_highest_priority_is_served_while_it_can_take(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.consumer(channel, queue, no_ack=True)
    world.consumer(channel, queue, prefetch=2, priority=5)
    world.consumer(channel, queue, no_ack=True, priority=-1)
    world.put(queue, *(b"x" for _ in range(4)))
    assert receivers(world, channel.session) == [1, 1, 0, 0]
    assert [consumer.owner for consumer in queue.consumers()] == [1, 0, 2]


def test_a_prefetch_of_its_own(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    consumer = world.consumer(channel, queue, prefetch=2)
    world.put(queue, b"1", b"2", b"3", b"4")
    assert world.bodies(channel.session) == [b"1", b"2"]
    assert consumer.unacked_count == 2
    world.feed(channel.session, ack(1))
    assert world.bodies(channel.session) == [b"3"]
    world.feed(channel.session, ack(0, True))
    assert world.bodies(channel.session) == [b"4"]


def test_a_prefetch_for_all_of_a_channel(world: World) -> None:
    channel = world.channel()
    channel.set_prefetch(3)
    one, two = world.queue(), world.queue()
    world.consumer(channel, one)
    world.consumer(channel, two)
    world.put(one, b"1", b"2")
    world.put(two, b"3", b"4")
    assert world.bodies(channel.session) == [b"1", b"2", b"3"]
    world.feed(channel.session, ack(2))
    assert world.bodies(channel.session) == [b"4"]


def test_deliveries_of_an_earlier_root_use_credit(world: World) -> None:
    queue = world.queue()
    channel = world.channel()
    channel.set_prefetch(3)
    consumer = world.consumer(channel, queue, prefetch=2)
    other = world.consumer(channel, queue)
    channel.owe(consumer, 2)
    channel.owe(None, 1)
    for number in range(4):
        world.put(queue, b"%d" % number)
    assert world.run(channel.session) == []
    channel.owe(None, -1)
    assert receivers(world, channel.session) == [other.owner]
    channel.owe(consumer, -2)
    assert receivers(world, channel.session) == [consumer.owner, other.owner]
    assert (consumer.unacked_count, other.unacked_count) == (1, 2)
    world.check_if_plain()


def test_the_credit_of_a_channel_goes_to_where_messages_are(world: World) -> None:
    channel, other = world.channel(), world.channel()
    channel.set_prefetch(1)
    queues = [world.queue() for _ in range(3)]
    for queue in queues:
        world.consumer(channel, queue)
    for queue in queues:
        world.put(queue, b"%d" % queue.owner)
    assert world.bodies(channel.session) == [b"0"]
    # The next in line finds its queue emptied by somebody else.
    queues[1].take(other, True, world.now_ms)
    world.feed(channel.session, ack(1))
    assert world.bodies(channel.session) == [b"2"]


def test_credit_that_a_woken_consumer_cannot_use_goes_to_the_next(world: World) -> None:
    channel = world.channel()
    channel.set_prefetch(1)
    queues = [world.queue(), world.queue(ttl_ms=5), world.queue()]
    for queue in queues:
        world.consumer(channel, queue)
        world.put(queue, b"%d" % queue.owner)
    assert world.bodies(channel.session) == [b"0"]
    world.now_ms += 10
    world.feed(channel.session, ack(1))
    assert world.bodies(channel.session) == [b"2"], "what the second one was woken for has expired"


def test_basic_get_uses_no_credit(world: World) -> None:
    channel = world.channel()
    channel.set_prefetch(1)
    queue = world.queue()
    world.put(queue, b"1", b"2", b"3")
    queue.take(channel, False, world.now_ms)
    world.consumer(channel, queue)
    assert world.bodies(channel.session) == [b"2"]
    assert channel.unacked_count == 2


def test_raising_the_prefetch_wakes(world: World) -> None:
    channel = world.channel()
    channel.set_prefetch(1)
    queue = world.queue()
    world.consumer(channel, queue)
    world.put(queue, b"1", b"2", b"3")
    assert world.bodies(channel.session) == [b"1"]
    channel.set_prefetch(2)
    assert world.engine.active
    assert world.bodies(channel.session) == [b"2"]
    channel.set_prefetch(0)
    assert world.bodies(channel.session) == [b"3"]


def test_a_held_channel_gets_nothing(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.consumer(channel, queue, no_ack=True)
    channel.hold()
    world.put(queue, b"1")
    assert world.bodies(channel.session) == []
    channel.release()
    assert world.bodies(channel.session) == [b"1"]


def test_a_channel_shut_by_the_broker_gets_nothing(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.consumer(channel, queue)
    channel.open = False
    world.put(queue, b"1")
    assert world.bodies(channel.session) == []
    channel.close(world.now_ms)
    assert queue.consumer_count == 0
    assert channel.session.channel(1) is None


def test_a_session_that_cannot_write_gets_nothing(world: World) -> None:
    channel, other = world.channel(), world.channel()
    queue = world.queue()
    world.consumer(channel, queue, no_ack=True)
    world.consumer(other, queue, no_ack=True)
    channel.session.pause()
    assert not channel.session.writable
    world.put(queue, b"1", b"2")
    assert world.bodies(channel.session) == []
    assert [event.body for event in world.run(other.session)] == [b"1", b"2"]
    channel.session.resume()
    world.put(queue, b"3", b"4")
    world.end_batch()
    assert channel.session.pending_bytes
    assert other.session.pending_bytes


def test_output_beyond_the_limit_lets_consumers_rest_until_it_is_taken(world: World) -> None:
    channel = world.channel(world.session(out_bytes_max=100))
    queue = world.queue()
    world.consumer(channel, queue, no_ack=True)
    world.put(queue, *(b"x" * 40 for _ in range(5)))
    rounds = []
    while world.end_batch() is None and channel.session.pending_bytes:
        assert not world.engine.active
        rounds.append(channel.session.pending_bytes)
        channel.session.take()
    assert len(rounds) > 1
    assert all(size < 300 for size in rounds)
    assert queue.ready_count == 0


def test_a_full_session_is_shared_fairly(world: World) -> None:
    channel = world.channel(world.session(out_bytes_max=0))
    queues = [world.queue() for _ in range(4)]
    for queue in queues:
        world.consumer(channel, queue, no_ack=True)
        world.put(queue, *(b"x" for _ in range(20)))
    order = []
    for _ in range(40):
        order += receivers(world, channel.session)
    assert len(order) == 40, "one message fills it"
    assert all(order[at : at + 4].count(number) == 1 for at in range(0, 40, 4) for number in range(4))


def test_a_cancelled_consumer_leaves_at_once_but_its_messages_stay_unacked(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    consumer = world.consumer(channel, queue)
    world.put(queue, b"1")
    world.run(channel.session)
    consumer.cancel()
    consumer.cancel()
    world.put(queue, b"2")
    assert world.run(channel.session) == []
    assert (queue.unacked_count, queue.consumer_count, channel.consumers()) == (1, 0, [])
    world.feed(channel.session, nack(1, False, True))
    assert world.ready(queue) == [b"1", b"2"]


def test_only_one_consumer_of_a_single_active_queue_is_active(world: World) -> None:
    channel = world.channel()
    queue = world.queue(single_active=True)
    first, second, third = (world.consumer(channel, queue, no_ack=True, priority=p) for p in (0, 0, 7))
    world.put(queue, b"1", b"2")
    assert receivers(world, channel.session) == [0, 0]
    assert [consumer.active for consumer in (first, second, third)] == [True, False, False]
    first.cancel()
    world.put(queue, b"3")
    assert receivers(world, channel.session) == [2], "the highest priority follows"
    third.cancel()
    assert second.active


def test_the_active_one_stays_active_while_it_rests(world: World) -> None:
    channel = world.channel()
    queue = world.queue(single_active=True)
    world.consumer(channel, queue, prefetch=1)
    world.consumer(channel, queue)
    world.put(queue, b"1", b"2")
    assert receivers(world, channel.session) == [0]
    world.feed(channel.session, ack(1))
    assert receivers(world, channel.session) == [0]


def test_closing_a_channel_gives_everything_back(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.consumer(channel, queue)
    world.put(queue, b"1", b"2")
    world.run(channel.session)
    channel.close(world.now_ms)
    assert world.ready(queue) == [b"1", b"2"]
    assert (queue.consumer_count, queue.unacked_count, channel.unacked_count) == (0, 0, 0)


def test_closing_a_session_gives_everything_back_and_silences_it(world: World) -> None:
    session = world.session()
    queue = world.queue()
    for number in (1, 2):
        world.consumer(world.channel(session, number), queue)
    world.put(queue, b"1", b"2")
    world.end_batch()
    session.close(world.now_ms)
    session.write(b"too late")
    assert world.ready(queue) == [b"1", b"2"]
    assert (session.pending_bytes, world.engine.take_dirty()) == (0, [])


def test_a_deleted_queue_lets_its_consumers_go(world: World) -> None:
    channel = world.channel()
    queue = world.queue(logged=True)
    consumer = world.consumer(channel, queue, prefetch=3)
    world.put(queue, b"1", b"2", b"3", b"4", props=b"\x10\x00\x02")
    world.end_batch()
    assert queue.delete() == 1
    assert (queue.deleted, queue.consumer_count, channel.consumers()) == (True, 0, [])
    assert world.engine.held_messages == 3, "the unacked ones"
    world.feed(channel.session, nack(1, False, True) + ack(2) + nack(3, False, False))
    assert world.engine.held_messages == 0
    assert world.end_batch() is None, "the deletion itself is the caller's to log"
    assert consumer.unacked_count == 0


def test_ten_thousand_consumers_cost_no_more_than_one(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    for _ in range(10_000):
        world.consumer(channel, queue, prefetch=1)
    for _ in range(3):
        world.put(queue, *(b"x" for _ in range(10_000)))
        assert len(world.run(channel.session)) == 10_000
        world.feed(channel.session, ack(0, True))
    assert {consumer.delivered for consumer in world.consumers} == {3}
