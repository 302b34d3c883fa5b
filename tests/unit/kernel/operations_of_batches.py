"""Bytes from clients, and the end of a batch."""

from __future__ import annotations

from typing import Any

from tests.unit.kernel.frames import ack, nack, publish, reject
from tests.unit.kernel.operations import KEYS, PROPERTIES, one, open_channel, operation
from tests.unit.kernel.world import World


@operation(30)
def publish_bytes(world: World, a: int, b: int, c: int) -> None:
    channel = one(world.channels, a) if a % 17 == 0 else open_channel(world, a)
    if channel is None:
        return
    props = PROPERTIES[b % len(PROPERTIES)]
    data = b"".join(
        publish(
            KEYS[(c + again) % len(KEYS)].encode(),
            b"%d." % (world.engine.published + again) + b"x" * (c % 11),
            props,
            channel=channel.number,
            bits=1 if c % 4 == 0 else 3 if c % 31 == 0 else 0,
            chunk=4 if b % 3 == 0 else 1 << 20,
        )
        for again in range(1 + a % 3)
    )
    # Sometimes the end comes later.
    cut = len(data) - b % 50 if c % 5 == 0 else len(data)
    world.feed(channel.session, data[:cut])
    world.unsent[channel.session.owner] = data[cut:]


@operation(25)
def settle_bytes(world: World, a: int, b: int, c: int) -> None:
    busy = [channel for channel in world.channels if channel.unacked_count and channel.open]
    channel = one(world.channels, a) if a % 37 == 0 else one(busy, a)
    if channel is None:
        return
    tag = one(channel.outstanding(0, True), b) or 0
    if c % 61 == 0:
        tag += b
    number = channel.number
    data = [
        ack(tag, channel=number),
        ack(tag, True, channel=number),
        nack(tag, False, True, channel=number),
        nack(tag, True, True, channel=number),
        nack(tag, True, False, channel=number),
        reject(tag, True, channel=number),
        reject(tag, False, channel=number),
        ack(0, True, channel=number),
    ][c % 8]
    world.feed(channel.session, data)


@operation(1)
def stray_bytes(world: World, a: int, b: int, c: int) -> None:
    session = one(world.sessions, a)
    if session is not None and a % 4 == 0:
        world.feed(session, bytes((b % 9, 0, c % 3, 0, 0, 0, 1, c % 256, 0xCE if b % 2 else a % 256)))


# --- the end of a batch


@operation(30)
def end_batch(world: World, a: int, b: int, c: int) -> Any:
    if a % 2:
        retire_dead(world, a, b, c)
    return world.end_batch(commit=b % 3 != 0)


@operation(10)
def commit(world: World, a: int, b: int, c: int) -> None:
    world.engine.committed(max(0, world.index - a % 3))


@operation(10)
def receive(world: World, a: int, b: int, c: int) -> None:
    world.engine.received(max(0, world.index - a % 3))


@operation(10)
def come_out(world: World, a: int, b: int, c: int) -> None:
    """Other brokers have got what was in their outlets."""
    world.engine.outlets_received(max(0, world.engine.batch - 1 - a % 3))


@operation(2)
def replicate(world: World, a: int, b: int, c: int) -> None:
    """Other brokers come or go."""
    world.engine.replicated = a % 4 != 0


@operation(12)
def take_output(world: World, a: int, b: int, c: int) -> Any:
    dirty = world.engine.take_dirty()
    return [(session.owner, session.take()) for session in dirty]


@operation(6)
def take_one(world: World, a: int, b: int, c: int) -> Any:
    session = one(world.sessions, a)
    return session and session.take()


@operation(8)
def retire_dead(world: World, a: int, b: int, c: int) -> None:
    """The dead go to another queue, as by a dead letter exchange."""
    dead = list(world.engine.dead)
    world.engine.dead.clear()
    world.engine.returned.clear()
    target = one(world.queues, a)
    for _, message, _, _ in dead:
        world.engine.enqueue(None, message, (target,), 0, world.now_ms)


@operation(12)
def pass_time(world: World, a: int, b: int, c: int) -> None:
    world.now_ms += a % 8


@operation(8)
def arm_timers(world: World, a: int, b: int, c: int) -> None:
    for queue in world.engine.waiting_for_time:
        queue.timer_armed = True
    world.engine.waiting_for_time.clear()


@operation(4)
def expire(world: World, a: int, b: int, c: int) -> None:
    queue = one(world.queues, a)
    if queue is not None:
        queue.timer_armed = False
        queue.expire(world.now_ms)
