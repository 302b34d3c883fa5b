"""Streams: what enters them, who reads them from where, and the chunks that come and go."""

from __future__ import annotations

from typing import Any

from tests.unit.kernel.operations import one, open_channel, operation
from tests.unit.kernel.world import World

SETTINGS: list[dict[str, Any]] = [
    {},
    {"chunk_bytes": 1},
    {"chunk_bytes": 200},
    {"chunk_age_ms": 5},
    {"chunk_bytes": 120, "chunk_age_ms": 9},
]
FILTERS: list[tuple[bytes, ...]] = [(), (), (b"1",), (b"1", b"2"), (b"nobody",)]


def live_stream(world: World, number: int) -> Any:
    return one([queue for queue in world.queues if queue.open_chunk is not None and not queue.deleted], number)


def seek(world: World, consumer: Any, b: int, c: int) -> None:
    offset = max(0, consumer.queue.next_sequence - 1 - (0, 1, 3, 8, 255)[b % 5])
    consumer.seek(offset, FILTERS[c % len(FILTERS)], b % 2 == 0)


@operation(5)
def declare_stream(world: World, a: int, b: int, c: int) -> None:
    if sum(not queue.deleted for queue in world.queues) < 6:
        queue = world.queue(logged=True, stream=True, **SETTINGS[b % len(SETTINGS)])
        if c % 2:
            world.bind("fan", queue)


@operation(8)
def read_stream(world: World, a: int, b: int, c: int) -> None:
    channel, queue = open_channel(world, a), live_stream(world, b)
    if channel is not None and queue is not None:
        consumer = world.consumer(channel, queue, no_ack=c % 7 == 0, prefetch=(0, 1, 2, 5)[c % 4])
        if a % 5:
            seek(world, consumer, b, c)


@operation(2)
def seek_once_more(world: World, a: int, b: int, c: int) -> None:
    consumer = one([consumer for consumer in world.consumers if consumer.queue.open_chunk is not None], a)
    if consumer is not None:
        seek(world, consumer, b, c)


@operation(6)
def reconfigure_stream(world: World, a: int, b: int, c: int) -> None:
    queue = live_stream(world, a)
    if queue is not None:
        queue.configure(stream=True, **SETTINGS[b % len(SETTINGS)])


@operation(14)
def store_chunks(world: World, a: int, b: int, c: int) -> Any:
    """They are written, and read again later; who reads from them may go on."""
    stored = []
    for queue, chunk in world.engine.full_chunks:
        data = chunk.seal()
        stored.append((queue.owner, chunk.seal_rows(1), data))
        world.chunks.setdefault(queue.owner, []).append(chunk if a % 2 else world.kernel.Chunk.open(data))
    world.engine.full_chunks.clear()
    return stored


@operation(14)
def give_chunks(world: World, a: int, b: int, c: int) -> Any:
    """A requested chunk is provided now or later, and sometimes a wrong one."""
    world.wanted_chunks += world.engine.wanted_chunks
    world.engine.wanted_chunks.clear()
    if not world.wanted_chunks:
        return None
    consumer = world.wanted_chunks.pop(a % len(world.wanted_chunks))
    chunks = [*world.chunks.get(consumer.queue.owner, []), *full_of(world, consumer.queue), consumer.queue.open_chunk]
    right = [chunk for chunk in chunks if chunk.count and chunk.last_offset >= consumer.next_offset]
    if c % 13 == 0 or not right:
        consumer.read_from(chunks[b % len(chunks)])
    else:
        consumer.read_from(right[0])
    return consumer.owner, consumer.next_offset


def full_of(world: World, queue: Any) -> list[Any]:
    return [chunk for owner, chunk in world.engine.full_chunks if owner is queue]


@operation(3)
def let_go_of_chunk(world: World, a: int, b: int, c: int) -> Any:
    """It is opened again when it is wanted."""
    chunks = one(list(world.chunks.values()), a)
    if not chunks:
        return None
    position = b % len(chunks)
    data = chunks[position].seal()
    chunks[position].let_go()
    chunks[position] = world.kernel.Chunk.open(data)
    return len(data)


@operation(2)
def reinstate_stream(world: World, a: int, b: int, c: int) -> Any:
    """Another stream is as this one was when its snapshot was taken."""
    queue = live_stream(world, a)
    if queue is None or sum(not queue.deleted for queue in world.queues) > 6:
        return None
    chunk = queue.open_chunk
    rows = chunk.seal_rows(chunk.count) if chunk.count else b""
    revived = world.queue(logged=True, stream=True, **SETTINGS[b % len(SETTINGS)])
    revived.reinstate_stream(queue.next_sequence + c % 2, rows)
    for refused in (0, 1, chunk.last_offset + 1):
        try:
            revived.reinstate_stream(refused, rows)
        except ValueError:
            continue
        assert not rows and refused
    return rows, revived.committed_end
