"""Outgoing bytes."""

from __future__ import annotations

from tests.unit.kernel.frames import properties, publish, read, split_frames
from tests.unit.kernel.world import World


def test_deliveries_and_other_bytes_keep_their_order(world: World) -> None:
    channel = world.channel()
    queue = world.queue()
    world.consumer(channel, queue, no_ack=True)
    channel.session.write(b"before")
    world.put(queue, b"x")
    world.end_batch()
    channel.session.write(b"after")
    data = channel.session.take()
    assert data.startswith(b"before")
    assert data.endswith(b"after")
    assert [event.body for event in read(data[6:-5])] == [b"x"]
    assert channel.session.take() == b""


def test_a_delivery_repeats_what_was_published(world: World) -> None:
    publisher, channel = world.channel(), world.channel(number=65535)
    queue = world.queue("key")
    world.consumer(channel, queue)
    props = properties(priority=3, expiration=b"99")
    world.feed(publisher.session, publish(b"key", b"body", props, exchange=b"exchange"))
    (event,) = world.run(channel.session)
    assert event == (
        65535, b"c0", 1, False, b"\x08exchange\x03key", b"\0\x3c\0\0\0\0\0\0\0\0\0\4" + props, b"body",
    )  # fmt: skip


def test_bodies_are_split_at_the_largest_frame(world: World) -> None:
    session = world.session(frame_max=4096)
    for size, frames in ((0, 0), (1, 1), (4088, 1), (4089, 2), (8176, 2), (8177, 3)):
        session.write_content(3, b"\0\x3c\0\x32", world.message(b"x" * size))
        found = split_frames(session.take())
        assert [frame[:2] for frame in found] == [(1, 3), (2, 3)] + [(3, 3)] * frames
        assert sum(len(frame[2]) for frame in found[2:]) == size
        assert all(len(frame[2]) + 8 <= 4096 for frame in found)


def test_without_a_limit_they_are_not(world: World) -> None:
    session = world.session(frame_max=0)
    session.write_content(1, b"\0\x3c\0\x32", world.message(b"x" * 300_000))
    assert len(split_frames(session.take())) == 3


def test_dirty_sessions_come_once_and_in_order(world: World) -> None:
    one, two, three = (world.session() for _ in range(3))
    for session in (two, one, two, three):
        session.write(b"x")
    three.take()
    assert world.engine.take_dirty() == [two, one]
    assert world.engine.take_dirty() == []
    two.write(b"y")
    assert world.engine.take_dirty() == [two]
    assert (one.take(), two.take()) == (b"x", b"xxy")


def test_pending_bytes_are_counted(world: World) -> None:
    session = world.session()
    session.write(b"abc")
    session.write(b"")
    assert session.pending_bytes == 3
    for size in (10, 1000, 100_000):
        session.write(b"z" * size)
    assert session.pending_bytes == 101_013
    assert len(session.take()) == 101_013
    assert session.pending_bytes == 0
