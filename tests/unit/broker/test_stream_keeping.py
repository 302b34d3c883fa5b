"""The durable state of a stream: chunks, segments, retention, offsets by name; all of it survives a restart."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq import kernel, methods
from pandomq.broker.limits import BrokerLimits, TableLimits
from pandomq.broker.log.revival import Revival
from pandomq.broker.log.snapshot import Snapshot
from pandomq.broker.streams import chunk_cache
from pandomq.broker.streams.chunk_index import ChunkIndex, SealedChunk
from pandomq.chunk_form import decode_rows
from pandomq.errors import Fault
from pandomq.limits import STREAM_CHUNK_AGE_MS, STREAM_STORED_OFFSETS_MAX
from tests.unit.broker.conversation import NOW_MS, World
from tests.unit.broker.stream_scene import chunk_bytes, declared, fill, heard_offsets, revived, stream_of, stream_world


def bodies_of(world: World) -> list[bytes]:
    return [row.body for blob in chunk_bytes(world) for row in decode_rows(blob)]


def test_published_messages_can_be_read_in_columns() -> None:
    world = World()
    peer = declared(world)
    fill(peer, 3, b"<%d>")
    (blob,) = chunk_bytes(world)
    rows = list(decode_rows(blob))
    assert [(row.offset, row.time_us, row.routing_key, row.body) for row in rows] == [
        (number, NOW_MS * 1000, b"s", b"<%d>" % number) for number in range(3)
    ]
    stream = stream_of(world)
    assert (stream.first_offset, stream.committed_end, stream.message_count) == (0, 3, 3)
    assert (stream.first_time_us, stream.last_time_us) == (NOW_MS * 1000, NOW_MS * 1000)


def test_an_empty_stream_has_nothing() -> None:
    world = World()
    declared(world)
    stream = stream_of(world)
    assert (stream.first_offset, stream.committed_end, stream.size_bytes, stream.segment_count) == (0, 0, 0, 0)
    assert (stream.first_time_us, stream.last_time_us) == (0, 0)
    assert stream.chunks(0, 100, 10) == []
    found: list[Any] = []
    stream.read(0, found.append)
    stream.find_time(NOW_MS * 1000, found.append)
    assert found == [None, 0]


def test_a_chunk_ends_when_it_is_old() -> None:
    world = World()
    peer = declared(world)
    fill(peer, 2)
    world.now_ms += STREAM_CHUNK_AGE_MS
    fill(peer, 1)
    assert [(row.first_offset, row.last_offset) for row in stream_of(world).chunks(0, 100, 10)] == [(0, 1), (2, 2)]


@pytest.mark.parametrize(("max_age", "chunk_age_ms"), [("8h", 600_000), ("80s", 10_000), ("1s", 1000)])
def test_a_chunk_is_a_small_part_of_what_is_kept(max_age: str, chunk_age_ms: int) -> None:
    world = World()
    peer = declared(world, max_age=max_age)
    fill(peer, 1)
    world.now_ms += chunk_age_ms - 1
    fill(peer, 1)
    assert not stream_of(world).index.rows
    world.now_ms += 1
    fill(peer, 1)
    assert len(stream_of(world).index.rows) == 1


def test_rows_are_those_of_the_range_that_was_asked_for() -> None:
    world = World()
    peer = declared(world, stream_max_segment_size_bytes=1)
    fill(peer, 10)
    stream = stream_of(world)
    assert [row.first_offset for row in stream.chunks(3, 6, 100)] == [3, 4, 5]
    assert [row.first_offset for row in stream.chunks(3, 100, 2)] == [3, 4]
    assert [row.first_offset for row in stream.chunks(8, 100, 5)] == [8, 9]


def test_the_time_of_a_message_leads_to_its_offset() -> None:
    world, places = stream_world()
    peer = declared(world, stream_max_segment_size_bytes=200)
    for _ in range(30):
        fill(peer, 1)
        world.now_ms += 100
    assert 2 < len(stream_of(world).index.rows) < 15
    found: list[int] = []
    for number in range(-1, 32):
        stream_of(world).find_time((NOW_MS + 100 * number) * 1000 - 7, found.append)
    assert found == [0, *range(31), 30]
    assert places.kept


def test_the_oldest_segments_go_when_there_is_too_much() -> None:
    world, places = stream_world()
    peer = declared(world, stream_max_segment_size_bytes=1000, max_length_bytes=5000)
    fill(peer, 300, b"x" * 90)
    stream = stream_of(world)
    assert 0 < stream.first_offset < 290
    assert stream.index.size_bytes <= 5000
    assert len(places.kept) == len(stream.index.rows)
    gone: list[Any] = []
    stream.read(0, gone.append)
    assert gone == [None]
    assert stream.message_count == 300 - stream.first_offset == len(bodies_of(world))


def test_the_oldest_segments_go_when_they_are_old() -> None:
    world = World()
    peer = declared(world, stream_max_segment_size_bytes=1, max_age="60s")
    for _ in range(20):
        fill(peer, 1)
        world.now_ms += 10_000
    stream = stream_of(world)
    # The segment that became full with the last message was ten seconds old, and the one before that twenty.
    assert stream.first_offset == 14
    assert stream.segment_count == 5


def test_the_last_segment_stays() -> None:
    world = World()
    peer = declared(world, max_length_bytes=1, max_age="1s")
    for _ in range(5):
        fill(peer, 1)
        world.now_ms += STREAM_CHUNK_AGE_MS
    assert stream_of(world).first_offset == 0


def test_the_chunks_of_a_deleted_stream_are_removed() -> None:
    world, places = stream_world()
    peer = declared(world, stream_max_segment_size_bytes=1)
    fill(peer, 10)
    assert len(places.kept) == 9
    assert world.broker.streams.held_bytes == 0, "it is on the disk"
    peer.call(methods.QueueDelete("s"), expect=methods.QueueDeleteOk)
    assert not places.kept


def test_without_a_disk_chunks_take_memory() -> None:
    world = World()
    peer = declared(world, stream_max_segment_size_bytes=1)
    fill(peer, 10)
    assert world.broker.streams.held_bytes == stream_of(world).index.size_bytes
    peer.call(methods.QueueDelete("s"), expect=methods.QueueDeleteOk)
    assert world.broker.streams.held_bytes == 0


@pytest.mark.parametrize("retained", [{}, {"max_length_bytes": 3000, "stream_max_segment_size_bytes": 500}])
def test_replicas_have_the_same_chunks(retained: dict[str, Any]) -> None:
    world, _ = stream_world()
    peer = declared(world, **retained)
    for number in range(200):
        peer.say_publish("", "s", b"%d" % number * 10)
        if number % 7 == 0:
            peer.flush()
            world.now_ms += 900
    peer.flush()
    other = world.replayed()
    assert chunk_bytes(other) == chunk_bytes(world)
    assert stream_of(other).chunks(0, 1000, 1000) == stream_of(world).chunks(0, 1000, 1000)


def test_a_stream_outlives_a_restart() -> None:
    world, places = stream_world()
    peer = declared(world, stream_max_segment_size_bytes=800)
    fill(peer, 50, b"%d" + b"x" * 50)
    store(world, "reader", 7)
    other = revived(world, places)
    assert chunk_bytes(other) == chunk_bytes(world)
    stream = stream_of(other)
    assert stream.stored_offsets == {"reader": 7}
    assert stream.segment_count == stream_of(world).segment_count
    again = other.peer()
    again.call(methods.BasicQos(0, 1000, False), expect=methods.BasicQosOk)
    again.publish("", "s", b"one more")
    again.send(methods.BasicConsume("s", "t", arguments={"x-stream-offset": "first"}))
    assert heard_offsets(again) == list(range(51))


def test_a_snapshot_contains_the_messages_at_the_time_of_its_making() -> None:
    world, places = stream_world()
    peer = declared(world)
    fill(peer, 5)
    before = bodies_of(world)
    other = revived(world, places)
    fill(peer, 5, first=5)
    assert bodies_of(other) == before
    assert bodies_of(world) == [b"%d" % number for number in range(10)]


def test_chunks_noted_by_a_snapshot_stay_until_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_cache, "STREAM_CACHE_BYTES_MAX", 1000)
    world, places = stream_world()
    peer = declared(world, stream_max_segment_size_bytes=500)
    fill(peer, 1, b"x" * 100)
    before = chunk_bytes(world)
    pieces = Snapshot(world.broker, exact=True).pieces(100)
    first = next(pieces)
    # Meanwhile the chunk is sealed, and leaves memory.
    fill(peer, 100, b"x" * 100)
    other = World(seed=3)
    other.broker.state.users.clear()
    revival = Revival(other.broker, places.kept.get)
    for piece in (first, *pieces):
        revival.take(piece)
    assert chunk_bytes(other) == before


def store(world: World, name: str, offset: int, stream: str = "s") -> Fault | None:
    heard: list[Fault | None] = []
    world.broker.streams.store_offset("/", stream, "guest", name, offset, heard.append, world.now_ms)
    world.run([])
    (answer,) = heard
    return answer


def test_offsets_are_stored_by_name() -> None:
    world = World()
    peer = declared(world)
    fill(peer, 3)
    assert store(world, "a", 1) is None
    assert store(world, "b", 2) is None
    assert store(world, "a", 3) is None
    assert stream_of(world).stored_offsets == {"a": 3, "b": 2}
    assert stream_of(world.replayed()).stored_offsets == {"a": 3, "b": 2}


def test_malformed_stored_offsets_are_refused() -> None:
    world = World()
    declared(world)
    for name, offset, stream, code in (
        ("", 1, "s", 406),
        ("x" * 256, 1, "s", 406),
        ("a", -1, "s", 406),
        ("a", 1, "t", 404),
    ):
        fault = store(world, name, offset, stream)
        assert fault is not None and fault.reply_code == code


def test_names_of_readers_that_fell_behind_make_room() -> None:
    world = World()
    peer = declared(world, stream_max_segment_size_bytes=1, max_length_bytes=1)
    fill(peer, 10)
    offsets = stream_of(world).offsets
    for number in range(STREAM_STORED_OFFSETS_MAX):
        offsets.store(f"r{number}", 2 if number else 9, 0)
    assert stream_of(world).first_offset > 2
    assert store(world, "new", 9) is None
    assert stream_of(world).stored_offsets == {"r0": 9, "new": 9}
    for number in range(STREAM_STORED_OFFSETS_MAX - 2):
        offsets.store(f"s{number}", 9, 0)
    fault = store(world, "one too many", 9)
    assert fault is not None and fault.reply_code == 406
    assert store(world, "new", 10) is None


def test_the_choice_of_names_that_make_room_does_not_depend_on_the_commit() -> None:
    world = World(limits=BrokerLimits(tables=TableLimits(stored_offsets_max=2)))
    peer = declared(world, max_length_bytes=1000, stream_max_segment_size_bytes=500)
    fill(peer, 2)
    world.late = True
    fill(peer, 40, b"x" * 200)
    assert stream_of(world).first_offset == 2, "nothing is left of what is committed"
    for name, offset in (("behind", 0), ("ahead", 3), ("new", 42)):
        world.broker.streams.store_offset("/", "s", "guest", name, offset, lambda fault: None, world.now_ms)
    world.run([])
    for other in (world.replayed(), world):
        assert stream_of(other).stored_offsets == {"new": 42}


def test_a_transaction_enters_a_stream_whole() -> None:
    world = World()
    peer = declared(world)
    peer.call(methods.TxSelect(), expect=methods.TxSelectOk)
    fill(peer, 3)
    assert stream_of(world).message_count == 0
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    assert stream_of(world).message_count == 3
    fill(peer, 3)
    peer.call(methods.TxRollback(), expect=methods.TxRollbackOk)
    assert stream_of(world).message_count == 3
    assert bodies_of(world.replayed()) == bodies_of(world)


def test_a_stream_takes_dead_letters() -> None:
    world = World()
    peer = declared(world)
    peer.declare("q", arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "s", "x-max-length": 0})
    peer.publish("", "q", b"late")
    assert bodies_of(world) == [b"late"]


def test_segments_are_runs_of_chunks() -> None:
    index = ChunkIndex()
    for number in range(10):
        index.add(SealedChunk(number, number, 1, 40, number, number, index.begins_segment(100), None))
    assert index.segment_count == 4
    assert [row.first_offset for row in index.drop_first_segment()] == [0, 1, 2]
    assert [row.first_offset for row in index.drop_before(5)] == [3, 4]
    assert (index.segment_count, index.size_bytes) == (3, 200)
    assert [row.first_offset for row in index.first_segment()] == [5]


def test_segments_are_the_same_for_an_index_made_of_the_rows_that_are_left() -> None:
    index, again = ChunkIndex(), ChunkIndex()
    for number in range(3):
        index.add(SealedChunk(number, number, 1, 40, 0, 0, index.begins_segment(100), None))
    index.drop_before(2)
    for row in index.rows:
        again.add(row)
    assert index.begins_segment(100) == again.begins_segment(100) is False


def test_a_stream_of_the_brokers_own_is_nobodys_business() -> None:
    from pandomq.broker.log.commands import DeclareQueue, DeleteQueue
    from pandomq.broker.views import queues
    from pandomq.fieldtable import encode_table

    world = World()
    peer = world.peer()
    arguments = encode_table({"x-queue-type": "stream"})
    declare = DeclareQueue("/", "s", world.broker.state.next_queue_id, True, False, arguments, "guest", NOW_MS, True)
    world.broker.issue(declare)
    world.run([])
    stream = stream_of(world)
    stream.begin_at(1000)
    world.broker.engine.enqueue(None, kernel.Message(b"\0\0", b"\0" * 14, b""), [stream.queue], 0, world.now_ms)
    world.run([])
    assert (stream.first_offset, stream.committed_end) == (1000, 1001)
    assert peer.refused(methods.QueueDeclare("s", passive=True)).reply_code == 404
    assert list(queues(world.broker)) == []
    peer.declare("s")
    assert world.broker.state.vhosts["/"].queue_count == 1
    assert not any(b'"s"' in piece for piece in world.broker.configuration() if b"stream" in piece)
    world.broker.issue(DeleteQueue("/", "s", True))
    world.run([])
    assert stream.queue.deleted
    assert peer.counts("s") == (0, 0)
