"""Operations on sessions, channels and consumers."""

from __future__ import annotations

from tests.unit.kernel.operations import live_queue, one, open_channel, operation
from tests.unit.kernel.world import World


@operation(4)
def open_session(world: World, a: int, b: int, c: int) -> None:
    world.session(frame_max=(0, 32, 4096)[a % 3], out_bytes_max=(0, 300, 1 << 20)[b % 3])


@operation(6)
def open_another_channel(world: World, a: int, b: int, c: int) -> None:
    session = one(world.sessions, a) or world.session()
    if session.channel(1 + b % 3) is None:
        world.channel(session, 1 + b % 3, mode=(0, 1, 1, 0, 1, 0, 2)[c % 7])


@operation(10)
def consume(world: World, a: int, b: int, c: int) -> None:
    channel, queue = open_channel(world, a), live_queue(world, b)
    if channel is not None and queue is not None:
        world.consumer(channel, queue, no_ack=c % 3 == 0, prefetch=(0, 1, 2, 5)[c % 4], priority=(0, 0, 7, -3)[a % 4])


@operation(4)
def cancel(world: World, a: int, b: int, c: int) -> None:
    consumer = one(world.consumers, a)
    if consumer is not None:
        consumer.cancel()


@operation(3)
def set_prefetch(world: World, a: int, b: int, c: int) -> None:
    channel = open_channel(world, a)
    if channel is not None:
        channel.set_prefetch((0, 1, 2, 6, 0)[b % 5])


@operation(2)
def hold(world: World, a: int, b: int, c: int) -> None:
    channel = one(world.channels, a)
    if channel is not None:
        channel.hold()


@operation(6)
def release(world: World, a: int, b: int, c: int) -> None:
    channel = one(world.channels, a)
    if channel is not None:
        channel.release()


@operation(2)
def hold_confirms(world: World, a: int, b: int, c: int) -> None:
    channel = one(world.channels, a)
    if channel is not None:
        channel.hold_confirms(0 if b % 2 else max(1, channel.published_count + 2 - c % 4))


@operation(3)
def owe(world: World, a: int, b: int, c: int) -> None:
    consumer = one(world.consumers, a)
    if consumer is not None:
        owed = world.owed.get(consumer, 0)
        count = -owed if b % 2 else 1 + c % 2
        world.owed[consumer] = owed + count
        consumer.channel.owe(consumer, count)


@operation(2)
def pause(world: World, a: int, b: int, c: int) -> None:
    session = one(world.sessions, a)
    if session is not None:
        session.pause()


@operation(6)
def resume(world: World, a: int, b: int, c: int) -> None:
    session = one(world.sessions, a)
    if session is not None:
        session.resume()


@operation(3)
def recover(world: World, a: int, b: int, c: int) -> None:
    channel = open_channel(world, a)
    if channel is not None:
        channel.recover(world.now_ms)


@operation(1)
def shut_channel(world: World, a: int, b: int, c: int) -> None:
    channel = open_channel(world, a)
    if channel is not None and b % 2:
        channel.open = False


@operation(4)
def close_channel(world: World, a: int, b: int, c: int) -> None:
    shut = [channel for channel in world.channels if not channel.open]
    channel = one(world.channels, a) if a % 3 == 0 else one(shut, a)
    if channel is not None:
        channel.close(world.now_ms)


@operation(1)
def close_session(world: World, a: int, b: int, c: int) -> None:
    session = one(world.sessions, a)
    if session is not None and b % 3 == 0:
        session.close(world.now_ms)


@operation(2)
def change_mode(world: World, a: int, b: int, c: int) -> None:
    channel = open_channel(world, a)
    if channel is not None and channel.mode == 0:
        channel.mode = b % 3


@operation(3)
def settle_one(world: World, a: int, b: int, c: int) -> None:
    """As at the commit of a transaction."""
    channel = open_channel(world, a)
    if channel is not None:
        tag = one(channel.outstanding(0, True), b) or 0
        method_id = (80, 90, 120)[c % 3]
        world.engine.settle_one(channel, method_id, tag, c % 2 == 0, method_id != 80 and c % 5 == 0, world.now_ms)
