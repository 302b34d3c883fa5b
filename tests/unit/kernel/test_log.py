"""The records of the log, which suffice to build the same queues again."""

from __future__ import annotations

from types import ModuleType

import hypothesis
import hypothesis.strategies as st
import pytest

from pandomq.kernel.records import (
    BadEntry,
    CommandRecord,
    DequeueRecord,
    EnqueueRecord,
    Record,
    decode_entry,
)
from tests.support.examples import examples
from tests.unit.kernel.frames import PERSISTENT, ack, publish
from tests.unit.kernel.lockstep import Lockstep, Step
from tests.unit.kernel.operations import OPERATIONS, WEIGHTS
from tests.unit.kernel.world import World


def records(entry: bytes | None) -> list[Record]:
    assert entry is not None
    return list(decode_entry(entry).records)


def test_only_persistent_messages_in_durable_queues_are_logged(world: World) -> None:
    durable, transient = world.queue("k", logged=True), world.queue("k")
    channel = world.channel()
    world.feed(channel.session, publish(b"k", b"mortal"))
    assert world.end_batch() is None
    world.feed(channel.session, publish(b"k", b"body", PERSISTENT))
    (record,) = records(world.end_batch())
    header = b"\0\x3c\0\0\0\0\0\0\0\0\0\4" + PERSISTENT
    assert record == EnqueueRecord(((1, 2),), b"\0\1k", header, b"body")
    world.consumer(channel, durable, no_ack=True)
    world.consumer(channel, transient, no_ack=True)
    assert records(world.end_batch()) == [DequeueRecord(1, 2, 1)]


def test_the_time_of_the_batch_is_in_the_entry(world: World) -> None:
    world.engine.log_command(b"x")
    entry = world.engine.seal(123456789)
    assert decode_entry(entry).now_ms == 123456789
    assert world.engine.seal(1) is None


def test_one_record_for_all_queues_of_a_message(world: World) -> None:
    queues = [world.queue(logged=number != 1) for number in range(3)]
    world.engine.enqueue(None, world.message(b"x", PERSISTENT), queues, 0, 1)
    (record,) = records(world.end_batch())
    assert isinstance(record, EnqueueRecord)
    assert record.places == ((1, 1), (3, 1))


def test_consecutive_dequeues_are_one_range(world: World) -> None:
    channel = world.channel()
    queues = [world.queue(logged=True) for _ in range(2)]
    for queue in queues:
        world.consumer(channel, queue)
        world.put(queue, *(b"x" for _ in range(10)), props=PERSISTENT)
    world.end_batch()
    tags = channel.outstanding(0, True)
    order = [tag for pair in zip(tags[:10], tags[10:], strict=True) for tag in pair]
    order.remove(5)
    world.feed(channel.session, b"".join(ack(tag) for tag in order))
    assert records(world.end_batch()) == [DequeueRecord(1, 1, 4), DequeueRecord(1, 6, 5), DequeueRecord(2, 1, 10)]


def test_a_command_is_logged_after_the_events_before_it(world: World) -> None:
    queue = world.queue(logged=True)
    world.put(queue, b"1", b"2", props=PERSISTENT)
    world.end_batch()
    assert queue.purge() == 2
    world.engine.log_command(b"delete the queue")
    world.put(queue, b"3", props=PERSISTENT)
    queue.purge()
    kinds = [type(record) for record in records(world.end_batch())]
    assert kinds == [DequeueRecord, CommandRecord, EnqueueRecord, DequeueRecord]


def test_a_message_that_does_not_stay_is_logged_in_before_it_is_logged_out(world: World) -> None:
    queue = world.queue(logged=True, length_max=0)
    world.put(queue, b"1", props=PERSISTENT)
    first, second = records(world.end_batch())
    assert isinstance(first, EnqueueRecord)
    assert second == DequeueRecord(1, 1, 1)


def test_more_queues_than_a_record_holds(kernel: ModuleType) -> None:
    world = World(kernel)
    queues = tuple(kernel.Queue(world.engine, None, number, True) for number in range(65_537))
    world.engine.enqueue(None, world.message(b"x", PERSISTENT), queues, 0, 1)
    one, two = records(world.engine.seal(1))
    assert isinstance(one, EnqueueRecord)
    assert isinstance(two, EnqueueRecord)
    assert (len(one.places), len(two.places), two.body) == (65_535, 2, b"x")


def test_restored_messages_are_at_their_places_and_unlogged(world: World) -> None:
    queue = world.queue(logged=True, length_max=1)
    for sequence in (5, 9, 7, 2**63):
        world.engine.restore(world.message(b"%d" % sequence, PERSISTENT), [(queue, sequence, 4)], world.now_ms)
    assert [(row[0], row[1]) for row in queue.snapshot()] == [(5, 4), (7, 4), (9, 4), (2**63, 4)]
    assert queue.next_sequence == 2**63 + 1
    queue.drop(7, 1)
    queue.drop(1, 2**62)
    assert [row[0] for row in queue.snapshot()] == [2**63]
    assert world.engine.seal(1) is None
    assert (queue.published, queue.dropped) == (0, 0)


def test_sequences_near_the_end_of_their_range(world: World) -> None:
    queue = world.queue(logged=True)
    queue.next_sequence = 2**64 - 3
    world.put(queue, b"1", b"2", props=PERSISTENT)
    queue.purge()
    assert records(world.end_batch())[-1] == DequeueRecord(1, 2**64 - 3, 2)


@pytest.mark.parametrize("change", ["cut", "longer", "version", "kind"])
def test_anything_else_is_no_entry(kernel: ModuleType, change: str) -> None:
    world = World(kernel)
    world.put(world.queue(logged=True), b"x", props=PERSISTENT)
    entry = world.end_batch()
    assert entry is not None
    if change == "cut":
        for end in range(len(entry)):
            with pytest.raises(BadEntry):
                decode_entry(entry[:end])
        return
    broken = {"longer": entry + b"\0", "version": b"\7" + entry[1:], "kind": entry[:13] + b"\7" + entry[14:]}[change]
    with pytest.raises(BadEntry):
        decode_entry(broken)


EXCLUDED = (
    "delete", "drop", "restore", "reinstate", "reinstate_stream", "end_batch", "page_out", "load", "revive",
    "replicate",
)  # fmt: skip
NUMBERS = st.integers(0, 255)
NAMES = st.sampled_from([name for name in OPERATIONS for _ in range(WEIGHTS[name]) if name not in EXCLUDED])


@hypothesis.settings(max_examples=examples(60))
@hypothesis.given(
    kind=st.integers(0, 3), script=st.lists(st.tuples(NAMES, NUMBERS, NUMBERS, NUMBERS), min_size=20, max_size=80)
)
def test_replay_gives_the_same_kept_messages(
    plain: ModuleType, fast: ModuleType, kind: int, script: list[Step]
) -> None:
    """Entries, applied in order to a fresh engine of the other twin, give what the first one holds."""
    pair = Lockstep(plain, fast, kind)
    entries: list[bytes] = []
    for number, step in enumerate(script):
        pair.step(step)
        if number % 5 == 4:
            entries += filter(None, (pair.plain.end_batch(),))
            pair.fast.end_batch()
    for world in (pair.plain, pair.fast):
        for message, places in world.awaited:
            world.engine.admit(message, places)
        for session in world.sessions:
            session.close(world.now_ms)
    entries += filter(None, (pair.plain.end_batch(),))
    copy = World(fast)
    queues = {
        queue.queue_id: copy.queue(logged=queue.open_chunk is not None, stream=queue.open_chunk is not None)
        for queue in pair.plain.queues
        if queue.logged
    }
    for entry in entries:
        apply(copy, queues, entry)
    for queue in pair.plain.queues:
        if queue.logged:
            held = {(row[0], row[5].body) for row in queue.snapshot() if row[5].kept}
            assert {(row[0], row[5].body) for row in queues[queue.queue_id].snapshot()} == held
            assert queues[queue.queue_id].committed_end == queue.committed_end


def apply(world: World, queues: dict[int, object], entry: bytes) -> None:
    for record in decode_entry(entry).records:
        if isinstance(record, EnqueueRecord):
            message = world.kernel.Message(record.routing, record.header, record.body)
            places = [(queues[queue_id], sequence, 1) for queue_id, sequence in record.places]
            world.engine.restore(message, places, world.now_ms)
        elif isinstance(record, DequeueRecord):
            queues[record.queue_id].drop(record.sequence_first, record.count)  # type: ignore[attr-defined]
