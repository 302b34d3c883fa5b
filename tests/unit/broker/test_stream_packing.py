"""Streams whose sealed chunks are packed: smaller where they are kept, and the same to whoever reads over AMQP."""

from __future__ import annotations

import pytest

from pandomq import chunk_form, methods
from pandomq.broker.log.commands import PutPolicy
from pandomq.broker.streams import packing
from tests.unit.broker.conversation import World
from tests.unit.broker.stream_scene import (
    STREAM,
    Places,
    chunk_bytes,
    declared,
    fill,
    heard_offsets,
    revived,
    stream_of,
    stream_world,
)

BODY = b"the same again " * 20


def kinds(places: Places) -> list[bool]:
    """Which of the chunks that are kept are packed, in order."""
    return [chunk_form.is_packed(stored.blob) for stored in places.kept.values()]


def read_all(world: World) -> list[int]:
    reader = world.peer()
    reader.send(methods.BasicQos(0, 1000, False)).hear()
    reader.send(methods.BasicConsume("s", "r", arguments={"x-stream-offset": "first"}))
    found: list[int] = []
    while more := heard_offsets(reader):
        found += more
        world.run([])
    return found


def test_chunks_are_packed_and_readers_see_nothing_of_it() -> None:
    world, places = stream_world()
    peer = declared(world, stream_compression="zstd", stream_max_segment_size_bytes=2000)
    fill(peer, 30, BODY)
    assert len(places.kept) > 2 and all(kinds(places))
    stream = stream_of(world)
    # The size of a stream is that of its messages before packing, so that all brokers agree.
    assert sum(len(stored.blob) for stored in places.kept.values()) < stream.index.size_bytes / 3
    *sealed, last = chunk_bytes(world)
    rows = [row for blob in (*map(packing.unpacked, sealed), last) for row in chunk_form.decode_rows(blob)]
    assert [(row.offset, row.body) for row in rows] == [(number, BODY) for number in range(30)]
    restarted = revived(world, places)
    assert read_all(restarted) == list(range(30))
    assert stream_of(restarted).chunks(0, 100, 100) == stream.chunks(0, 100, 100)
    found: list[int] = []
    stream_of(restarted).find_time(rows[0].time_us, found.append)
    assert found == [0]


def test_a_policy_is_for_chunks_to_come() -> None:
    world, places = stream_world()
    peer = declared(world, stream_max_segment_size_bytes=2000)
    fill(peer, 10, BODY)
    before = len(places.kept)
    world.administer(PutPolicy("/", "p", ".*", "streams", 0, b'{"stream-compression": "zstd"}'))
    fill(peer, 10, BODY, first=10)
    assert kinds(places)[:before] == [False] * before and kinds(places)[-1]
    assert read_all(revived(world, places)) == list(range(20))


def test_the_argument_comes_before_the_policy() -> None:
    world, places = stream_world()
    world.administer(PutPolicy("/", "p", ".*", "streams", 0, b'{"stream-compression": "zstd"}'))
    fill(declared(world, stream_compression="none", stream_max_segment_size_bytes=2000), 10, BODY)
    assert places.kept and not any(kinds(places))


@pytest.mark.parametrize("value", ["gzip", "", 3])
def test_other_compressions_are_refused(value: object) -> None:
    arguments = {**STREAM, "x-stream-compression": value}
    close = World().peer().refused(methods.QueueDeclare("s", durable=True, arguments=arguments))
    assert "invalid arg 'x-stream-compression'" in close.reply_text


def test_the_compression_is_refused_for_other_queues_than_streams() -> None:
    close = World().peer().refused(methods.QueueDeclare("q", arguments={"x-stream-compression": "zstd"}))
    assert "invalid arg 'x-stream-compression'" in close.reply_text
