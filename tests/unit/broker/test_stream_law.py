"""The law of the log, for streams: whatever happened, brokers with the same entries have the same chunks, byte for
byte, and so has one that began from a snapshot in the middle."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq import methods
from pandomq.broker.log.commands import DeletePolicy, PutPolicy
from pandomq.limits import STREAM_CHUNK_AGE_MS
from tests.support.examples import examples
from tests.unit.broker.conversation import World
from tests.unit.broker.stream_scene import STREAM, chunk_bytes, revived, stream_of, stream_world

STREAMS = ("s", "t")
SMALL = {**STREAM, "x-stream-max-segment-size-bytes": 400, "x-max-length-bytes": 2500}

names = st.sampled_from(STREAMS)
steps = st.one_of(
    st.tuples(st.just("publish"), names, st.integers(0, 300), st.booleans()),
    st.tuples(st.just("publish"), names, st.integers(0, 300), st.booleans()),
    st.tuples(st.just("commit"), names, st.integers(1, 5)),
    st.tuples(st.just("pass"), st.sampled_from((1, 700, STREAM_CHUNK_AGE_MS, 40_000))),
    st.tuples(
        st.just("policy"),
        st.sampled_from(
            (
                b'{"max-age": "30s"}',
                b'{"stream-max-segment-size-bytes": 90}',
                b'{"retain-until-archived": "a", "max-unarchived-bytes": 3500}',
                b'{"retain-until-archived": "a", "max-age": "30s"}',
                b'{"stream-compression": "zstd", "stream-max-segment-size-bytes": 900}',
                None,
            )
        ),
    ),
    st.tuples(st.just("delete"), names),
    st.tuples(st.just("store"), names, st.sampled_from(("a", "b")), st.integers(0, 30)),
    st.tuples(st.just("read"), names),
)


class History:
    def __init__(self) -> None:
        self.world, self.places = stream_world()
        self.peer = self.world.peer()
        self.peer.call(methods.BasicQos(0, 3, False), expect=methods.BasicQosOk)
        self.declare()

    def declare(self) -> None:
        self.peer.say(methods.QueueDeclare("s", durable=True, arguments=STREAM))
        self.peer.say(methods.QueueDeclare("t", durable=True, arguments=SMALL)).flush().hear()

    def play(self, step: Any) -> None:
        peer, world = self.peer, self.world
        match step:
            case ("publish", name, size, together):
                peer.say_publish("", name, b"x" * size)
                if not together:
                    peer.flush()
            case ("commit", name, count):
                other = world.peer()
                other.send(methods.TxSelect())
                for _ in range(count):
                    other.publish("", name, b"in a transaction")
                other.send(methods.TxCommit())
                other.leave()
            case ("pass", milliseconds):
                peer.flush()
                world.pass_time(milliseconds)
            case ("policy", None):
                world.administer(DeletePolicy("/", "p"))
            case ("policy", definition):
                world.administer(PutPolicy("/", "p", ".*", "streams", 0, definition))
            case ("delete", name):
                peer.send(methods.QueueDelete(name)).hear()
                self.declare()
            case ("store", name, who, offset):
                world.broker.streams.store_offset("/", name, "guest", who, offset, lambda _: None, world.now_ms)
            case ("read", name):
                reader = world.peer()
                reader.send(methods.BasicQos(0, 2, False))
                reader.send(methods.BasicConsume(name, "r", arguments={"x-stream-offset": "first"})).hear()
                reader.leave()
            case _:
                raise AssertionError(step)


def seen(world: World) -> dict[str, Any]:
    return {
        name: (
            chunk_bytes(world, name),
            stream_of(world, name).chunks(0, 2**62, 10**6),
            stream_of(world, name).stored_offsets,
            stream_of(world, name).segment_count,
            stream_of(world, name).queue.next_sequence,
        )
        for name in STREAMS
    }


@pytest.mark.proves("R26")
@settings(deadline=None, max_examples=examples(60))
@given(st.lists(steps, min_size=5, max_size=60), st.lists(steps, max_size=30))
def test_brokers_with_the_same_log_have_the_same_chunks(before: list[Any], after: list[Any]) -> None:
    history = History()
    for step in before:
        history.play(step)
    history.peer.flush()
    world = history.world
    restarted = revived(world, history.places)
    assert seen(restarted) == seen(world)
    middle = len(world.entries)
    for step in after:
        history.play(step)
    history.peer.flush()
    world.run([])
    assert seen(world.replayed()) == seen(world)
    for index, entry in enumerate(world.entries[middle:], start=middle + 1):
        restarted.broker.apply(index, 1, entry)
    assert seen(restarted) == seen(world)
    assert len(history.places.kept) == sum(len(stream_of(world, name).index.rows) for name in STREAMS)


def test_readers_receive_the_messages_that_the_chunks_have() -> None:
    history = History()
    for number in range(100):
        history.peer.publish("", "t", b"%d" % number)
    reader = history.world.peer()
    reader.send(methods.BasicQos(0, 1000, False))
    reader.send(methods.BasicConsume("t", "r", arguments={"x-stream-offset": "first"}))
    read = [received.body for received in reader.hear() if isinstance(received.method, methods.BasicDeliver)]
    assert read == [b"%d" % number for number in range(stream_of(history.world, "t").first_offset, 100)]
