"""The compiled twin gives back what it takes."""

from __future__ import annotations

import gc
import sys
from types import ModuleType
from typing import Any

import psutil
import pytest

from tests.unit.kernel.frames import PERSISTENT, ack, deliver, headers, nack, properties, publish
from tests.unit.kernel.test_mirrors import Front
from tests.unit.kernel.world import World

PROPS = [b"\0\0", PERSISTENT, properties(priority=3), properties(expiration=b"1"), properties(table=headers(k=b"v"))]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"dead_letters": True, "length_max": 3},
    {"priority_max": 4, "ttl_ms": 5},
    {"last_value_key": b"k"},
    {"delivery_limit": 1, "counts_deliveries": True},
    {"length_max": 2, "overflow": 2, "dead_letters": True},
]


def cycle(world: World, number: int) -> None:
    """A life: publish, deliver, settle in all ways, close."""
    session = world.session(out_bytes_max=500)
    channel = world.channel(session, mode=number % 2)
    queue = world.queue("k", logged=number % 3 == 0, **SETTINGS[number % len(SETTINGS)])
    world.consumer(channel, queue, prefetch=number % 4, no_ack=number % 5 == 0)
    data = b"".join(publish(b"k", b"%d" % number, PROPS[(number + at) % len(PROPS)]) for at in range(8))
    world.feed(session, data[:-3])
    world.feed(session, data[-3:])
    for _ in range(2):
        world.end_batch()
        session.take()
        tags = channel.outstanding(0, True)
        if tags:
            world.feed(session, nack(tags[-1], False, True) + ack(tags[0]) if len(tags) > 1 else ack(tags[0]))
    queue.take(channel, False, world.now_ms)
    world.now_ms += 3
    world.feed(session, publish(b"k", b"unfinished")[:-1])
    if number % 2:
        session.close(world.now_ms)
        queue.delete()
    else:
        queue.delete()
        session.close(world.now_ms)
    world.end_batch()
    world.engine.dead.clear()
    world.engine.waiting_for_time.clear()
    assert world.engine.held_messages == 0
    world.engine.take_dirty()
    for kept in (world.sessions, world.scanners, world.unsent, world.channels, world.queues, world.consumers):
        kept.clear()
    world.settings.clear()
    world.table.clear()
    world.plans.clear()
    world.events.clear()
    world.routes.clear()


def rss_bytes() -> int:
    gc.collect()
    return int(psutil.Process().memory_info().rss)


def test_worlds_leave_no_memory_behind(fast: ModuleType) -> None:
    world = World(fast)
    for number in range(2_000):
        cycle(world, number)
    before = rss_bytes()
    for number in range(6_000):
        cycle(world, number)
    assert rss_bytes() - before < 2 << 20


def test_a_hundred_thousand_messages_leave_nothing_behind(fast: ModuleType) -> None:
    world = World(fast)
    channel = world.channel()
    queue = world.queue("k")
    world.consumer(channel, queue, prefetch=100)
    data = publish(b"k", b"x" * 100) * 100

    def many(rounds: int) -> None:
        for _ in range(rounds):
            world.feed(channel.session, data)
            world.end_batch()
            channel.session.take()
            world.feed(channel.session, ack(0, True))

    many(200)
    before = rss_bytes()
    many(1_000)
    assert rss_bytes() - before < 1 << 20
    assert (world.engine.held_messages, queue.acked) == (0, 120_000)


@pytest.mark.parametrize("way", ["ack", "purge", "delete", "close", "drop the engine", "drop it unsettled"])
def test_references_to_a_message_are_given_back(fast: ModuleType, way: str) -> None:
    world = World(fast)
    channel = world.channel()
    message = world.message(b"x" * 50)
    base = sys.getrefcount(message)
    queues = [world.queue(priority_max=number) for number in range(3)]
    world.consumer(channel, queues[0])
    world.engine.enqueue(channel, message, queues, 0, world.now_ms)
    world.end_batch()
    assert sys.getrefcount(message) == base + 3
    if way == "ack":
        world.feed(channel.session, ack(1))
        assert sys.getrefcount(message) == base + 2
    elif way == "close":
        channel.session.close(world.now_ms)
        assert sys.getrefcount(message) == base + 3
    if way.startswith("drop"):
        # A broker that begins a new life lets go of the old one as it is, with what its consumers have not acked.
        if way == "drop the engine":
            channel.recover(world.now_ms)
        del world, channel, queues
        gc.collect()
    else:
        for queue in queues:
            queue.delete() if way == "delete" else queue.purge()
        channel.recover(world.now_ms)
        for queue in queues:
            queue.purge()
    assert sys.getrefcount(message) == base


def test_an_unacked_message_goes_with_its_channel(fast: ModuleType) -> None:
    world = World(fast)
    message = world.message(b"x")
    base = sys.getrefcount(message)
    channel = world.channel()
    world.consumer(channel, world.queue())
    world.engine.enqueue(None, message, world.queues, 0, world.now_ms)
    world.end_batch()
    channel.session.close(world.now_ms)
    del channel, world
    gc.collect()
    assert sys.getrefcount(message) == base


def test_an_idle_client_is_small(fast: ModuleType) -> None:
    world = World(fast)
    keep = []

    def client() -> None:
        session = fast.Session(world.engine, None, world.routes, 131072, 1 << 20)
        channel = fast.Channel(session, 1, None)
        queue = fast.Queue(world.engine, None, 1, False)
        consumer = fast.Consumer(channel, queue, b"ctag1.0123456789abcdef0123456789abcdef", False, 0, 0, None)
        scanner = fast.Scanner(131072, 1 << 27)
        world.engine.enqueue(None, world.message(b"x" * 100), (queue,), 0, 1)
        world.engine.deliver(1)
        session.take()
        world.engine.settle_one(channel, 80, 1, False, False, 1)
        keep.append((session, channel, queue, consumer, scanner))

    for _ in range(1_000):
        client()
    before = rss_bytes()
    for _ in range(5_000):
        client()
    assert (rss_bytes() - before) / 5_000 < 3 * 1024


def relayed_life(world: World, number: int) -> None:
    """A client of a broker that is not the root: forwards, gets deliveries and copies, its tunnel changes, it goes."""
    session, kernel = world.session(), world.kernel
    channel = world.channel(session, mode=1)
    session.uplink = world.session()
    private, mailbox = world.queue("k"), world.queue(mirror=True)
    world.consumer(channel, private, no_ack=True)
    consumer = world.consumer(channel, mailbox, prefetch=3)
    world.feed(session, publish(b"k", b"near") * 3 + publish(b"far", b"far") * (number % 20))
    (run,) = kernel.Scanner(0, 100, True).feed(b"".join(deliver(consumer.tag, tag, b"m") for tag in range(1, 300)))
    world.engine.mirror(session, run, 0)
    (run,) = kernel.Scanner(0, 100, True).feed(deliver(bytes(7) + b"\5", number + 1, b"o", key=b"k") * 2)
    world.engine.fan_out(world.routes, None, run, world.seen, 0)
    world.end_batch()
    world.feed(session, ack(channel.outstanding(0, True)[1]))
    (run,) = kernel.Scanner(0, 0).feed(ack(2, True) + ack(4 + number % 3))
    world.engine.relay_confirms(session, run)
    session.uplink.take()
    session.uplink = world.session()
    channel.resend()
    if number % 2:
        channel.give_back(mailbox)
    channel.forget(mailbox)
    mailbox.delete()
    session.close(world.now_ms)
    private.delete()
    world.end_batch()
    world.engine.take_dirty()
    assert world.engine.held_messages == world.engine.held_bytes == 0
    for kept in (world.sessions, world.scanners, world.unsent, world.channels, world.queues, world.consumers):
        kept.clear()
    for table in (world.settings, world.table, world.plans, world.events, world.routes):
        table.clear()


def test_relayed_worlds_leave_no_memory_behind(fast: ModuleType) -> None:
    world = World(fast)
    for number in range(300):
        relayed_life(world, number)
    before = rss_bytes()
    for number in range(1_000):
        relayed_life(world, number)
    assert rss_bytes() - before < 2 << 20


def life_of_a_stream(world: World, number: int) -> None:
    stream = world.queue("k", logged=True, stream=True, chunk_bytes=300)
    channels = [world.channel() for _ in range(3)]
    readers = [world.consumer(channel, stream, prefetch=4, no_ack=channel.owner % 3 == 0) for channel in channels]
    for reader in readers:
        reader.seek(number % 4, (b"v",) if number % 5 == 0 else (), True)
    for _ in range(3):
        world.feed(channels[0].session, publish(b"k", b"x" * 60, PROPS[number % len(PROPS)]) * 7)
        world.end_batch()
        stored = [fast_copy(world, chunk) for _, chunk in world.engine.full_chunks]
        world.engine.full_chunks.clear()
        for reader in world.engine.wanted_chunks:
            reader.read_from(stored[0] if stored else stream.open_chunk)
        world.engine.wanted_chunks.clear()
        for channel in channels[:-1]:
            channel.session.take()
            world.feed(channel.session, ack(0, True))
    stream.reinstate_stream(stream.next_sequence, stream.open_chunk.seal_rows(stream.open_chunk.count))
    channels[1].forget(stream)
    if number % 2:
        stream.delete()
    for channel in channels:
        channel.session.close(world.now_ms)
    stream.delete()
    world.end_batch()
    world.engine.wanted_chunks.clear()
    world.engine.take_dirty()
    for kept in (world.sessions, world.scanners, world.unsent, world.channels, world.queues, world.consumers):
        kept.clear()
    for table in (world.settings, world.table, world.plans, world.events, world.routes):
        table.clear()


def fast_copy(world: World, chunk: Any) -> Any:
    return world.kernel.Chunk.open(chunk.seal())


def test_streams_and_their_readers_leave_nothing_behind(fast: ModuleType) -> None:
    world = World(fast)
    for number in range(300):
        life_of_a_stream(world, number)
    before = rss_bytes()
    for number in range(1_500):
        life_of_a_stream(world, number)
    assert rss_bytes() - before < 2 << 20
    assert world.engine.held_messages == world.engine.held_bytes == 0


def test_a_channel_and_the_tunnel_of_its_client_are_freed_together(fast: ModuleType) -> None:
    """A front refers to its clients, and their tunnels refer to the front: it is one cycle of garbage."""
    world = World(fast)
    message = world.message(b"x")
    base = sys.getrefcount(message)
    front = Front(world)
    front.arrive(front.subscribe(), 1)
    front.tunnel.owner, front.client.owner = [front.client, message], front
    del world, front
    gc.collect()
    assert sys.getrefcount(message) == base
