"""Operations on queues."""

from __future__ import annotations

from typing import Any

from pandomq.kernel.constants import NEVER_MS
from tests.unit.kernel.operations import PROPERTIES, SETTINGS, live_queue, one, open_channel, operation
from tests.unit.kernel.world import World


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
        if queue.next_sequence == 1:
            world.settings[queue.owner] = SETTINGS[b % len(SETTINGS)]
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
def await_log(world: World, a: int, b: int, c: int) -> None:
    queue = one(world.queues, a)
    if queue is not None:
        queue.await_log()


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


@operation(3)
def prepare(world: World, a: int, b: int, c: int) -> Any:
    """As a transaction does with its commit."""
    queues = [queue for at, queue in enumerate(world.queues) if b >> at % 8 & 1]
    message = world.message(b"t%d" % c, PROPERTIES[c % 8])
    accepted, places = world.engine.prepare(open_channel(world, a), message, queues, c % 2, world.now_ms, a % 5 == 0)
    world.awaited.append((message, places))
    return accepted, [(queue.queue_id, *place) for queue, *place in places]


@operation(3)
def admit(world: World, a: int, b: int, c: int) -> None:
    if world.awaited:
        world.engine.admit(*world.awaited.pop(a % len(world.awaited)))


@operation(2)
def reinstate(world: World, a: int, b: int, c: int) -> None:
    queue = one(world.queues, a)
    if queue is not None and not queue.deleted and queue.open_chunk is None:
        sequence = queue.next_sequence + b % 3
        message = world.message(b"s%d" % sequence, PROPERTIES[c % 8])
        queue.reinstate(message, sequence, 2, world.now_ms + b if b % 2 else NEVER_MS, c % 3, c % 2 == 0)


@operation(1)
def suspect(world: World, a: int, b: int, c: int) -> None:
    queue = one(world.queues, a)
    if queue is not None:
        queue.suspect()


@operation(4)
def unacked(world: World, a: int, b: int, c: int) -> Any:
    channel = one(world.channels, a)
    return channel and [(queue.queue_id, *rest, world.name(message)) for queue, *rest, message in channel.unacked()]


@operation(2)
def refuse(world: World, a: int, b: int, c: int) -> None:
    channel = one(world.channels, a)
    if channel is not None:
        world.engine.refuse(channel)


@operation(2)
def repeat(world: World, a: int, b: int, c: int) -> None:
    channel = one(world.channels, a)
    if channel is not None:
        world.engine.repeat(channel)


@operation(3)
def log_command(world: World, a: int, b: int, c: int) -> None:
    world.engine.log_command(b"command %d" % a)


@operation(8)
def look(world: World, a: int, b: int, c: int) -> Any:
    return world.view()
