"""Publishes that carry whose they are: counted, logged, labelled, and left out when they come again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.kernel.frames import PERSISTENT, Confirmed, deliver, properties, publish, read
from tests.unit.kernel.world import World

PRODUCER = 2**63 + 5
LABEL = PRODUCER.to_bytes(8, "big")


def numbers(world: World, queue: Any) -> list[tuple[int, int]]:
    return [(row[5].producer, row[5].number) for row in queue.snapshot()]


def test_a_counted_publish_carries_its_number(world: World) -> None:
    channel, queue = world.channel(mode=1), world.queue("k")
    world.feed(channel.session, publish(b"k", b"0"))
    channel.producer = PRODUCER
    world.feed(channel.session, publish(b"k", b"1") * 2 + publish(b"k", b"3", properties(user_id=b"u")))
    channel.producer = 0
    world.feed(channel.session, publish(b"k", b"4"))
    assert numbers(world, queue) == [(0, 0), (PRODUCER, 2), (PRODUCER, 3), (PRODUCER, 4), (0, 0)]


@pytest.mark.parametrize("mode", [0, 2])
def test_an_uncounted_publish_carries_no_number(world: World, mode: int) -> None:
    channel, queue = world.channel(mode=mode), world.queue("k")
    channel.producer = PRODUCER
    world.feed(channel.session, publish(b"k", b"1"))
    world.put(queue, b"2", channel=channel)
    assert channel.published_count == 0
    assert set(numbers(world, queue)) == {(0, 0)}


def test_a_message_is_used_again_without_its_number(world: World) -> None:
    channel, queue = world.channel(mode=1), world.queue("k")
    world.consumer(channel, queue, no_ack=True)
    for producer in (PRODUCER, 0):
        channel.producer = producer
        for _ in range(100):
            world.feed(channel.session, publish(b"k", b"x"))
            world.run(channel.session)
    queue.consumers()[0].cancel()
    world.feed(channel.session, publish(b"k", b"x"))
    assert numbers(world, queue) == [(0, 0)]


def test_a_possibly_repeated_message_is_marked_redelivered(world: World) -> None:
    """This includes copies that are written at once. A message that reuses its memory is not marked."""
    channel = world.channel()
    queues = [world.queue(f"q{number}") for number in range(6)]
    for queue in queues[:5]:
        world.consumer(channel, queue, no_ack=True)
    for suspect in (True, False):
        message = world.message(b"x")
        message.suspect = suspect
        world.engine.enqueue(None, message, queues, 0, world.now_ms)
        del message
        assert [delivered.redelivered for delivered in world.run(channel.session)] == [suspect] * 5
    assert [row[4] for row in queues[5].snapshot()] == [True, False]


def test_counting_can_begin_later(world: World) -> None:
    channel, queue = world.channel(mode=1), world.queue("k", logged=True)
    channel.producer = PRODUCER
    channel.set_published(40)
    assert (channel.published_count, channel.unconfirmed_count) == (40, 0)
    world.feed(channel.session, publish(b"k", b"1", PERSISTENT) + publish(b"k", b"2"))
    assert numbers(world, queue) == [(PRODUCER, 41), (PRODUCER, 42)]
    assert world.run(channel.session) == [Confirmed(1, True, 42, True)]
    world.feed(channel.session, publish(b"k", b"3"))
    with pytest.raises(ValueError, match="not confirmed"):
        channel.set_published(1)


def test_replicated_numbers_can_begin_later(world: World) -> None:
    world.engine.replicated = True
    channel = world.channel(mode=1)
    world.queue("k", logged=True)
    channel.producer = PRODUCER
    channel.set_published(40)
    world.feed(channel.session, publish(b"k", b"1", PERSISTENT) + publish(b"k", b"2") * 2)
    world.end_batch(commit=False)
    world.engine.received(world.index)
    assert [event.number for event in read(channel.session.take())] == [42, 43]
    world.engine.committed(world.index)
    assert [event.number for event in read(channel.session.take())] == [41]


def test_the_batch_names_channels_whose_publishes_it_logs(world: World) -> None:
    channels = [world.channel(mode=1) for _ in range(3)]
    for channel in channels[:2]:
        channel.producer = PRODUCER + channel.owner
    world.queue("logged", logged=True)
    world.queue("not")
    for channel in (channels[1], channels[0], channels[1], channels[2]):
        world.feed(channel.session, publish(b"logged", b"1", PERSISTENT) * 2)
    world.end_batch()
    world.feed(channels[0].session, publish(b"not", b"2", PERSISTENT) + publish(b"logged", b"3"))
    world.feed(channels[1].session, publish(b"logged", b"4", PERSISTENT))
    world.end_batch()
    assert [event for event in world.events if event[0] == "numbered"] == [
        ("numbered", (1, 4), (0, 2)),
        ("numbered", (1, 5)),
    ]


def test_a_publish_that_was_sent_before_goes_to_the_hook(world: World) -> None:
    channel = world.channel(mode=1)
    world.queue("k")
    world.feed(channel.session, publish(b"k", b"1"))
    world.events.clear()
    channel.producer = PRODUCER
    channel.repeats_through = 3
    world.feed(channel.session, publish(b"k", b"x") * 4)
    assert [event[0] for event in world.events] == ["publish", "accepted"] * 2


def test_labelled_deliveries(world: World) -> None:
    channel, queue, outlet = world.channel(mode=1), world.queue("k"), world.channel(number=2)
    consumer = world.consumer(outlet, queue, no_ack=True)
    assert not consumer.labelled
    consumer.labelled = True
    channel.producer = PRODUCER
    channel.set_published(8)
    world.feed(channel.session, publish(b"k", b"1"))
    world.put(queue, b"2")
    assert [(one.consumer, one.tag, one.body) for one in world.run(outlet.session)] == [
        (LABEL, 9, b"1"),
        (b"", 0, b"2"),
    ]
    consumer.labelled = False
    world.put(queue, b"3")
    assert [(one.consumer, one.tag) for one in world.run(outlet.session)] == [(b"c0", 3)]


def test_labels_survive_in_pages(world: World) -> None:
    channel, queue, outlet = world.channel(mode=1), world.queue("k"), world.channel(number=2)
    channel.producer = PRODUCER
    world.use_pages()
    world.feed(channel.session, publish(b"k", b"x") * 4)
    world.put(queue, *[b"y"] * 6)
    world.end_batch()
    world.page_out()
    assert queue.pages()
    world.consumer(outlet, queue, no_ack=True).labelled = True
    found: list[Any] = []
    for _ in range(6):
        found += [(one.consumer, one.tag) for one in world.run(outlet.session)]
        while world.load():
            pass
    assert found == [(LABEL, number) for number in (1, 2, 3, 4)] + [(b"", 0)] * 6


class Trunk:
    def __init__(self, world: World) -> None:
        self.world = world
        self.seen: dict[int, int] = {}

    def take(self, *items: tuple[bytes, int, bytes], key: bytes = b"k", props: bytes = b"\0\0") -> None:
        data = b"".join(deliver(label, number, body, props, key=key) for label, number, body in items)
        (run,) = self.world.kernel.Scanner(4096, 100, True).feed(data)
        self.world.engine.fan_out(self.world.routes, self, run, self.seen, self.world.now_ms)


def test_one_copy_goes_to_all_queues_here(world: World) -> None:
    queues = [world.queue("k") for _ in range(5)]
    trunk = Trunk(world)
    trunk.take((b"", 0, b"1"), (b"", 0, b"2"))
    assert [world.ready(queue) for queue in queues] == [[b"1", b"2"]] * 5
    assert [event[0] for event in world.events] == ["fan out"]
    assert (world.engine.held_messages, world.engine.unroutable) == (2, 0)
    trunk.take((b"", 0, b"3"), props=properties(user_id=b"u"))
    assert [event[0] for event in world.events] == ["fan out"] * 2


def test_a_message_without_a_queue_on_this_broker_is_dropped(world: World) -> None:
    trunk = Trunk(world)
    world.routes.put(world.kernel.routing_of("", "k"), world.kernel.Plan([]))
    trunk.take((b"", 0, b"1"))
    assert (world.events, world.engine.unroutable, world.engine.held_messages) == ([], 0, 0)


def test_a_message_that_comes_again_is_left_out(world: World) -> None:
    queue, trunk, other = world.queue("k"), Trunk(world), (9).to_bytes(8, "big")
    trunk.take((LABEL, 1, b"1"), (LABEL, 2, b"2"), (other, 1, b"o1"), (LABEL, 2, b"2"), (LABEL, 3, b"3"))
    trunk.take((other, 1, b"o1"), (LABEL, 3, b"3"), (LABEL, 5, b"5"), (b"", 0, b"x"), (b"", 0, b"x"))
    assert world.ready(queue) == [b"1", b"2", b"o1", b"3", b"5", b"x", b"x"]
    assert list(trunk.seen.items()) == [(9, 1), (PRODUCER, 5)], "in the order in which they last published"
