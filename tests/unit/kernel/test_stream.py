"""The input of a stream: offsets, chunks and their ends, the time at which it may be read, and an equal replay."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.kernel import constants
from pandomq.kernel.constants import CHUNK_MESSAGES_MAX, NEVER_MS
from pandomq.kernel.records import EnqueueRecord, decode_entry
from tests.unit.kernel.frames import PERSISTENT, properties, publish, read
from tests.unit.kernel.world import World


def stream_of(world: World, **settings: Any) -> Any:
    return world.queue(logged=True, stream=True, **settings)


def rows_of(chunk: Any) -> list[tuple[Any, ...]]:
    return [chunk.row(position) for position in range(chunk.count)]


def offsets(world: World, queue: Any) -> list[list[int]]:
    """Of the full chunks, then of the open one."""
    chunks = [chunk for owner, chunk in world.engine.full_chunks if owner is queue]
    return [[row[0] for row in rows_of(chunk)] for chunk in (*chunks, queue.open_chunk)]


class Backup:
    """The hooks of a replay into streams that are configured as those of another world."""

    def __init__(self, kernel: ModuleType, *settings: dict[str, Any]) -> None:
        self.world = World(kernel)
        for one in settings:
            stream_of(self.world, **one)

    def began(self, now_ms: int) -> None:
        pass

    def find_queue(self, queue_id: int) -> Any:
        return self.world.queues[queue_id - 1]

    def command(self, command: bytes) -> None:
        pass

    def restored(self, queue: Any, sequence: int, message: Any) -> None:
        raise AssertionError("streams tell nothing")


def test_messages_are_rows_of_the_open_chunk(world: World) -> None:
    queue = stream_of(world)
    world.now_ms = 5
    world.put(queue, b"one", b"two")
    assert [(row[0], row[1], row[5]) for row in rows_of(queue.open_chunk)] == [(0, 5000, b"one"), (1, 5000, b"two")]
    assert (queue.ready_count, queue.next_sequence, queue.published, world.engine.held_messages) == (0, 3, 2, 0)
    assert queue.take(world.channel(), False, 5) is None


def test_stream_messages_are_logged_and_confirmed_when_committed(world: World) -> None:
    queue = stream_of(world)
    channel = world.channel(mode=constants.CONFIRM)
    world.feed(channel.session, publish(b"q0", b"transient"))
    entry = world.end_batch(commit=False)
    assert entry is not None
    (record,) = decode_entry(entry).records
    assert isinstance(record, EnqueueRecord)
    assert record.places == ((queue.queue_id, 1),)
    world.engine.received(world.index)
    assert not channel.session.take()
    world.engine.committed(world.index)
    assert [event.positive for event in read(channel.session.take())] == [True]


def test_uncommitted_stream_messages_cannot_be_read(world: World) -> None:
    queue = stream_of(world)
    world.put(queue, b"one")
    assert queue.committed_end == 0
    world.end_batch(commit=False)
    world.put(queue, b"two")
    assert queue.committed_end == 0
    world.engine.committed(world.index)
    assert queue.committed_end == 1
    world.end_batch()
    assert queue.committed_end == 2


def test_a_message_that_no_longer_fits_begins_a_chunk(world: World) -> None:
    queue = stream_of(world, chunk_bytes=150)
    world.put(queue, *(b"x" * 10 for _ in range(7)))
    # Each takes 32 octets for its place, 14 for its header, and its body.
    assert offsets(world, queue) == [[0, 1, 2], [3, 4, 5], [6]]


def test_an_old_chunk_ends_with_the_next_message(world: World) -> None:
    queue = stream_of(world, chunk_age_ms=10)
    for now_ms in (100, 109, 110, 111, 130):
        world.now_ms = now_ms
        world.put(queue, b"x")
    assert offsets(world, queue) == [[0, 1], [2, 3], [4]]


def test_a_chunk_has_so_many_messages_at_most(fast: ModuleType) -> None:
    world = World(fast)
    queue = stream_of(world, chunk_bytes=1 << 40)
    message = world.message()
    for _ in range(CHUNK_MESSAGES_MAX + 1):
        world.engine.enqueue(None, message, (queue,), 0, 0)
    assert [len(some) for some in offsets(world, queue)] == [CHUNK_MESSAGES_MAX, 1]


def test_times_do_not_fall(world: World) -> None:
    queue = stream_of(world)
    for now_ms in (100, 90, 101):
        world.now_ms = now_ms
        world.put(queue, b"x")
    assert [row[1] for row in rows_of(queue.open_chunk)] == [100_000, 100_000, 101_000]


def test_limits_and_times_of_queues_mean_nothing(world: World) -> None:
    settings = {"ttl_ms": 0, "length_max": 1, "overflow": 1, "dead_letters": True, "priority_max": 5}
    queue = stream_of(world, **settings)
    assert world.put(queue, b"one", b"two", props=properties(expiration=b"0", priority=9))
    world.now_ms += 1000
    world.end_batch()
    assert not world.engine.dead
    assert queue.purge() == 0
    assert [row[5] for row in rows_of(queue.open_chunk)] == [b"one", b"two"]


def test_a_stream_among_other_queues(world: World) -> None:
    stream, queue = stream_of(world), world.queue(logged=True)
    world.bind("fan", stream)
    world.bind("fan", queue)
    channel = world.channel()
    world.feed(channel.session, publish(b"fan", b"x") + publish(b"fan", b"y", PERSISTENT))
    assert world.ready(queue) == [b"x", b"y"]
    assert stream.open_chunk.count == 2
    entry = world.end_batch()
    assert entry is not None
    # A transient message is transient in the queue alone.
    places = [record.places for record in decode_entry(entry).records if isinstance(record, EnqueueRecord)]
    assert places == [((1, 1),), ((1, 2), (2, 2))]


def test_a_transaction_is_there_when_it_is_committed(world: World) -> None:
    queue = stream_of(world)
    message = world.message(b"x")
    accepted, places = world.engine.prepare(None, message, (queue,), 0, world.now_ms, False)
    assert (accepted, places) == (True, [(queue, 1, 0, NEVER_MS)])
    world.end_batch(commit=False)
    assert queue.committed_end == 0
    world.engine.committed(world.index)
    world.engine.admit(message, places)
    assert (queue.committed_end, queue.open_chunk.count, queue.published) == (1, 1, 1)


def test_a_stream_must_be_logged(world: World) -> None:
    with pytest.raises(ValueError, match="logged"):
        world.queue(stream=True)


def test_a_queue_keeps_its_kind_when_it_is_configured_again(world: World) -> None:
    queue = stream_of(world)
    world.put(queue, b"x")
    queue.configure(length_max=0)
    world.put(queue, b"y")
    assert queue.open_chunk.count == 2
    plain_queue = world.queue(logged=True)
    world.put(plain_queue, b"x")
    plain_queue.configure(stream=True)
    assert plain_queue.open_chunk is None
    assert plain_queue.committed_end == 0


def test_deleting_drops_all(world: World) -> None:
    queue = stream_of(world)
    consumer = world.consumer(world.channel(), queue)
    consumer.seek(0)
    world.put(queue, b"x")
    assert queue.delete() == 0
    assert queue.consumer_count == 0
    assert queue.open_chunk.count == 0
    world.end_batch()


BATCHES = st.lists(st.tuples(st.integers(0, 12), st.lists(st.binary(max_size=40), max_size=5)), max_size=12)


@given(batches=BATCHES, chunk_bytes=st.integers(1, 400), chunk_age_ms=st.integers(1, 30))
def test_replay_gives_the_same_chunks(
    plain: ModuleType, fast: ModuleType, batches: list[Any], chunk_bytes: int, chunk_age_ms: int
) -> None:
    settings = {"chunk_bytes": chunk_bytes, "chunk_age_ms": chunk_age_ms}
    world = World(fast)
    queue = stream_of(world, **settings)
    backups = [Backup(kernel, settings) for kernel in (plain, fast)]
    for passed_ms, bodies in batches:
        world.now_ms += passed_ms
        world.put(queue, *bodies, props=PERSISTENT)
        entry = world.end_batch()
        for backup in backups if entry is not None else ():
            backup.world.engine.replay(entry, 1, backup)
    sealed = [chunk.seal() for _, chunk in world.engine.full_chunks]
    for backup in backups:
        (copy,) = backup.world.queues
        assert [chunk.seal() for _, chunk in backup.world.engine.full_chunks] == sealed
        assert rows_of(copy.open_chunk) == rows_of(queue.open_chunk)
        assert (copy.next_sequence, copy.committed_end) == (queue.next_sequence, queue.committed_end)


def test_a_stream_goes_on_from_its_snapshot(kernel: ModuleType) -> None:
    settings = {"chunk_bytes": 150}
    world, revived = World(kernel), World(kernel)
    queue, copy = stream_of(world, **settings), stream_of(revived, **settings)
    world.put(queue, *(b"x" * 10 for _ in range(5)))
    copy.reinstate_stream(queue.next_sequence, queue.open_chunk.seal_rows(queue.open_chunk.count))
    assert (copy.next_sequence, copy.committed_end) == (6, 5)
    for one, stream in ((world, queue), (revived, copy)):
        one.put(stream, b"x" * 10, b"x" * 10)
    assert offsets(revived, copy) == offsets(world, queue)[1:]


def test_messages_that_are_there_are_not_restored_again(world: World) -> None:
    queue = stream_of(world)
    queue.reinstate_stream(8, b"")
    for sequence in (7, 8, 8, 10):
        world.engine.restore(world.message(b"%d" % sequence), [(queue, sequence, 1)], world.now_ms)
    assert offsets(world, queue) == [[7, 9]]
    assert (queue.committed_end, queue.next_sequence) == (10, 11)


def test_a_snapshot_that_is_none_is_refused(world: World) -> None:
    queue = stream_of(world)
    world.put(queue, b"x", b"y")
    rows = queue.open_chunk.seal_rows(2)
    for next_sequence, data in ((2, rows), (0, b""), (3, rows[:-1]), (3, b"\0" + rows[1:])):
        with pytest.raises(ValueError, match=r".+"):
            queue.reinstate_stream(next_sequence, data)
    queue.reinstate_stream(3, rows)
    with pytest.raises(ValueError, match="stream"):
        world.queue().reinstate_stream(1, b"")
