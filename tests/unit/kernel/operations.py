"""What can be done to a world, each with three small numbers that choose its details; used to drive two in lockstep.

An operation returns what its caller would see. One that finds nothing to work on does nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.kernel.frames import ack, headers, nack, properties, publish, reject
from tests.unit.kernel.world import World

Operation = Callable[[World, int, int, int], Any]
OPERATIONS: dict[str, Operation] = {}
WEIGHTS: dict[str, int] = {}

KEYS = ["q0", "q1", "q2", "fan", "q0", "fan", "nowhere"]
PROPERTIES = [
    properties(),
    properties(),
    properties(delivery_mode=2),
    properties(delivery_mode=2, priority=3),
    properties(priority=200),
    properties(priority=1),
    properties(expiration=b"0"),
    properties(expiration=b"5", delivery_mode=2),
    properties(expiration=b"never"),
    properties(table=headers(k=b"1")),
    properties(table=headers(k=b"2"), delivery_mode=2),
    properties(table=headers(CC=b"x")),
    properties(table=headers(x_delay=b"x")),
    properties(user_id=b"guest"),
    properties(reply_to=b"amq.rabbitmq.reply-to"),
    properties()[:1],
]
SETTINGS: list[dict[str, Any]] = [
    {},
    {"dead_letters": True},
    {"ttl_ms": 7, "dead_letters": True},
    {"ttl_ms": 0},
    {"length_max": 2},
    {"length_max": 0, "dead_letters": True},
    {"length_max": 2, "dead_letters": True, "priority_max": 5},
    {"bytes_max": 40, "dead_letters": True},
    {"length_max": 2, "overflow": 1},
    {"bytes_max": 30, "overflow": 2, "dead_letters": True},
    {"priority_max": 5},
    {"priority_max": 255, "ttl_ms": 9},
    {"delivery_limit": 1, "dead_letters": True, "counts_deliveries": True},
    {"delivery_limit": 0},
    {"counts_deliveries": True},
    {"last_value_key": b"k"},
    {"last_value_key": b"k", "priority_max": 3, "length_max": 3},
    {"single_active": True},
]


def operation(weight: int) -> Callable[[Operation], Operation]:
    def register(function: Operation) -> Operation:
        OPERATIONS[function.__name__] = function
        WEIGHTS[function.__name__] = weight
        return function

    return register


def one(items: list[Any], number: int) -> Any:
    """None if there are none."""
    return items[number % len(items)] if items else None


def open_channel(world: World, number: int) -> Any:
    """One that its client would use."""
    present = (channel for channel in world.channels if channel.session.channel(channel.number) is channel)
    return one([channel for channel in present if channel.open], number)


def live_queue(world: World, number: int) -> Any:
    return one([queue for queue in world.queues if not queue.deleted], number)


# --- bytes from clients


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


# --- sessions, channels, consumers


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


# --- queues


@operation(6)
def declare(world: World, a: int, b: int, c: int) -> None:
    if sum(not queue.deleted for queue in world.queues) < 6:
        queue = world.queue(logged=a % 2 == 0, **SETTINGS[b % len(SETTINGS)])
        if c % 2:
            world.bind("fan", queue)


@operation(3)
def configure(world: World, a: int, b: int, c: int) -> None:
    queue = one(world.queues, a)
    if queue is not None and not queue.deleted:
        queue.configure(**SETTINGS[b % len(SETTINGS)])


@operation(6)
def get(world: World, a: int, b: int, c: int) -> Any:
    channel, queue = open_channel(world, a), live_queue(world, b)
    if channel is None or queue is None:
        return None
    got = queue.take(channel, c % 3 == 0, world.now_ms)
    return got and (*got[:2], world.name(got[2]), got[3])


@operation(3)
def withdraw(world: World, a: int, b: int, c: int) -> Any:
    queue = one(world.queues, a)
    message = queue and queue.withdraw(max(1, queue.next_sequence - b % 6))
    return message and world.name(message)


@operation(2)
def purge(world: World, a: int, b: int, c: int) -> Any:
    queue = one(world.queues, a)
    return queue and queue.purge()


@operation(2)
def drop(world: World, a: int, b: int, c: int) -> None:
    queue = one(world.queues, a)
    if queue is not None:
        queue.drop(max(1, queue.next_sequence - b % 8), (1, 2, 1000)[c % 3])


@operation(1)
def delete(world: World, a: int, b: int, c: int) -> Any:
    queue = one(world.queues, a)
    if queue is None or queue.deleted or b % 3:
        return None
    for bound in world.table.values():
        if queue in bound:
            bound.remove(queue)
    for plan in world.plans:
        plan.withdraw()
    return queue.delete()


@operation(4)
def restore(world: World, a: int, b: int, c: int) -> None:
    queue = one(world.queues, a)
    if queue is None or queue.deleted:
        return
    taken = {row[0] for row in queue.snapshot()}
    # Where it is unacked it must not come a second time; far above the rest it surely is not.
    sequence = queue.next_sequence + b % 3
    message = world.message(b"r%d" % sequence, PROPERTIES[c % 8])
    assert sequence not in taken
    world.engine.restore(message, [(queue, sequence, 3)], world.now_ms)


@operation(4)
def enqueue(world: World, a: int, b: int, c: int) -> Any:
    """As hooks do it for messages without a plan."""
    channel = open_channel(world, a)
    queues = [queue for at, queue in enumerate(world.queues) if b >> at % 8 & 1]
    message = world.message(b"e%d" % c, PROPERTIES[c % 8])
    world.engine.term = a % 3
    return world.engine.enqueue(channel if c % 2 else None, message, queues, c % 2, world.now_ms)


@operation(2)
def refuse(world: World, a: int, b: int, c: int) -> None:
    channel = one(world.channels, a)
    if channel is not None:
        world.engine.refuse(channel)


@operation(3)
def log_command(world: World, a: int, b: int, c: int) -> None:
    world.engine.log_command(b"command %d" % a)


@operation(8)
def look(world: World, a: int, b: int, c: int) -> Any:
    return world.view()
