"""The readers of a stream: their offset, their speed, their messages, and the form of their deliveries."""

from __future__ import annotations

import struct
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.kernel import constants
from pandomq.kernel.constants import READ_BURST
from tests.unit.kernel.frames import ack, headers, nack, properties, read, reject, short
from tests.unit.kernel.world import World

OFFSET = short(b"x-stream-offset") + b"l"


class Readers:
    """A stream, and a consumer on a channel of its own."""

    def __init__(self, world: World, prefetch: int = 1000, **settings: Any) -> None:
        self.world = world
        self.stream = world.queue(logged=True, stream=True, **settings)
        self.channel = world.channel()
        self.consumer = world.consumer(self.channel, self.stream, prefetch=prefetch)
        self.chunks: list[Any] = []

    def put(self, *bodies: bytes, props: bytes = b"\0\0") -> None:
        self.world.put(self.stream, *bodies, props=props)
        self.world.end_batch()
        self.chunks += [chunk for _, chunk in self.world.engine.full_chunks]
        self.world.engine.full_chunks.clear()

    def serve(self) -> None:
        """Gives the chunks that are wanted, until none is."""
        while self.world.engine.wanted_chunks:
            for consumer in self.world.engine.wanted_chunks[:]:
                self.world.engine.wanted_chunks.remove(consumer)
                chunks = (*self.chunks, self.stream.open_chunk)
                consumer.read_from(next(chunk for chunk in chunks if chunk.last_offset >= consumer.next_offset))
            self.world.engine.deliver(self.world.now_ms)

    def got(self) -> list[bytes]:
        self.world.engine.deliver(self.world.now_ms)
        self.serve()
        return [event.body for event in read(self.channel.session.take())]


@pytest.fixture
def readers(world: World) -> Readers:
    return Readers(world)


def offset_of(header: bytes) -> int:
    at = header.index(OFFSET) + len(OFFSET)
    return int(struct.unpack_from(">q", header, at)[0])


def test_a_consumer_rests_until_it_knows_from_where(readers: Readers) -> None:
    readers.put(b"1", b"2")
    assert readers.got() == []
    assert readers.consumer.next_offset == -1
    readers.consumer.seek(1)
    assert readers.world.engine.active
    assert readers.got() == [b"2"]
    assert readers.consumer.next_offset == 2


def test_many_read_the_same_messages(world: World) -> None:
    readers = Readers(world)
    others = [world.consumer(world.channel(), readers.stream) for _ in range(2)]
    readers.put(b"1", b"2", b"3")
    for offset, consumer in enumerate((readers.consumer, *others)):
        consumer.seek(offset)
    assert readers.got() == [b"1", b"2", b"3"]
    assert world.bodies(others[0].channel.session) == [b"2", b"3"]
    assert world.bodies(others[1].channel.session) == [b"3"]
    readers.put(b"4")
    assert [world.bodies(consumer.channel.session) for consumer in others] == [[b"4"], [b"4"]]


def test_the_end_is_waited_for(readers: Readers) -> None:
    readers.consumer.seek(2)
    readers.put(b"0", b"1")
    assert readers.got() == []
    readers.put(b"2")
    assert readers.got() == [b"2"]


def test_nothing_is_delivered_before_it_is_committed(world: World) -> None:
    readers = Readers(world)
    readers.consumer.seek(0)
    world.put(readers.stream, b"1")
    world.end_batch(commit=False)
    world.put(readers.stream, b"2")
    assert readers.got() == []
    world.engine.committed(world.index)
    assert readers.got() == [b"1"]
    world.end_batch()
    assert readers.got() == [b"2"]


def test_acks_give_credit_and_nothing_else(world: World) -> None:
    readers = Readers(world, prefetch=2)
    readers.consumer.seek(0)
    readers.put(*(b"%d" % number for number in range(8)))
    assert readers.got() == [b"0", b"1"]
    for frame, more in ((ack(1), [b"2"]), (nack(3, True, True), [b"3", b"4"]), (reject(4, False), [b"5"])):
        world.feed(readers.channel.session, frame)
        assert readers.got() == more
    assert (readers.stream.acked, readers.stream.dropped, readers.stream.unacked_count) == (1, 0, 2)
    assert world.engine.seal(0) is None
    assert not world.engine.dead
    readers.channel.recover(world.now_ms)
    assert readers.got() == [b"6", b"7"]
    assert [row[1] for row in readers.channel.unacked()] == [7, 8]
    readers.channel.close(world.now_ms)
    assert (readers.stream.unacked_count, readers.stream.consumer_count, world.engine.held_messages) == (0, 0, 0)


def test_an_ack_bars_no_confirm(world: World) -> None:
    readers = Readers(world)
    readers.channel.mode = constants.CONFIRM
    readers.consumer.seek(0)
    readers.put(b"1")
    readers.got()
    world.feed(readers.channel.session, ack(1))
    assert world.engine.seal(world.now_ms) is None


def test_chunks_are_asked_for_once_and_in_order(world: World) -> None:
    readers = Readers(world, chunk_bytes=1)
    readers.put(b"0", b"1", b"2", b"3")
    readers.consumer.seek(1)
    world.engine.deliver(world.now_ms)
    world.engine.deliver(world.now_ms)
    assert world.engine.wanted_chunks == [readers.consumer]
    world.engine.wanted_chunks.clear()
    # One that ends before is of no use, and an answer that nobody waits for does nothing.
    readers.consumer.read_from(readers.chunks[0])
    world.engine.deliver(world.now_ms)
    assert world.engine.wanted_chunks == [readers.consumer]
    assert readers.got() == [b"1", b"2", b"3"]
    readers.consumer.read_from(readers.chunks[0])
    assert readers.got() == []
    # At the end it goes on by itself.
    readers.put(b"4", b"5")
    assert readers.got() == [b"4", b"5"]


def test_dropped_chunks_are_left_out(world: World) -> None:
    readers = Readers(world, chunk_bytes=1)
    readers.put(b"0", b"1", b"2")
    del readers.chunks[0]
    readers.consumer.seek(0)
    assert readers.got() == [b"1", b"2"]
    del readers.chunks[:]
    late = world.consumer(readers.channel, readers.stream, prefetch=9)
    late.seek(0)
    assert readers.got() == [b"2"]


def test_a_chunk_may_be_sealed_while_it_is_read(world: World) -> None:
    readers = Readers(world, prefetch=2, chunk_bytes=200)
    readers.consumer.seek(0)
    readers.put(*(b"%d" % number for number in range(4)))
    assert readers.got() == [b"0", b"1"]
    readers.put(*(b"%d" % number for number in range(4, 10)))
    for chunk in readers.chunks:
        chunk.seal()
    seen = []
    for tag in range(1, 11):
        world.feed(readers.channel.session, ack(tag))
        seen += readers.got()
    assert seen == [b"%d" % number for number in range(2, 10)]


def test_a_chunk_that_was_let_go_is_wanted_again(world: World) -> None:
    readers = Readers(world, prefetch=2, chunk_bytes=200)
    readers.put(*(b"%d" % number for number in range(6)))
    readers.consumer.seek(0)
    assert readers.got() == [b"0", b"1"]
    data = readers.chunks[0].seal()
    readers.chunks[0].let_go()
    readers.chunks[0] = world.kernel.Chunk.open(data)
    world.feed(readers.channel.session, ack(0, True))
    world.engine.deliver(world.now_ms)
    assert world.engine.wanted_chunks == [readers.consumer]
    assert readers.got() == [b"2", b"3"]


def test_a_cancelled_consumer_gets_nothing(readers: Readers) -> None:
    readers.put(b"1")
    readers.consumer.seek(0)
    readers.consumer.cancel()
    readers.consumer.read_from(readers.stream.open_chunk)
    assert readers.got() == []


def test_filters_leave_out_the_rest(world: World) -> None:
    readers = Readers(world)
    for value in (b"a", b"b", None, b"a", b"ab"):
        props = b"\0\0" if value is None else properties(table=headers(k=b"x", x_stream_filter_value=value))
        readers.put(str(value).encode(), props=props)
    readers.put(b"odd", props=properties(table=b"\0\0\0\x18" + short(b"x-stream-filter-value") + b"tx"))
    cases: list[tuple[tuple[bytes, ...], bool, list[bytes]]] = [
        ((b"a",), False, [b"b'a'", b"b'a'"]),
        ((b"a",), True, [b"b'a'", b"None", b"b'a'", b"odd"]),
        ((b"ab", b"b"), False, [b"b'b'", b"b'ab'"]),
        ((b"c",), False, []),
        ((), False, [b"b'a'", b"b'b'", b"None", b"b'a'", b"b'ab'", b"odd"]),
    ]
    for filters, match_unfiltered, expected in cases:
        channel = world.channel()
        consumer = world.consumer(channel, readers.stream)
        consumer.seek(0, filters, match_unfiltered)
        assert world.bodies(channel.session) == expected
        assert consumer.next_offset == 6


def test_deliveries_carry_their_offset(readers: Readers) -> None:
    readers.put(b"1", props=properties(table=headers(k=b"v"), delivery_mode=2, priority=4))
    readers.put(b"2")
    readers.consumer.seek(0)
    readers.world.engine.deliver(0)
    first, second = read(readers.channel.session.take())
    entry = headers(k=b"v")[4:] + OFFSET + struct.pack(">q", 0)
    assert first.header[12:] == properties(table=struct.pack(">I", len(entry)) + entry, delivery_mode=2, priority=4)
    entry = OFFSET + struct.pack(">q", 1)
    assert second.header[12:] == properties(table=struct.pack(">I", len(entry)) + entry)
    assert (first.tag, first.redelivered, first.routing, first.consumer) == (1, False, b"\0\0", b"c0")


def test_an_offset_from_elsewhere_is_replaced(readers: Readers) -> None:
    table = headers(a=b"1", x_stream_offset=b"17", b=b"2")
    readers.put(b"1", props=properties(table=table, priority=1))
    readers.consumer.seek(0)
    readers.world.engine.deliver(0)
    (event,) = read(readers.channel.session.take())
    entry = headers(a=b"1", b=b"2")[4:] + OFFSET + struct.pack(">q", 0)
    assert event.header[12:] == properties(table=struct.pack(">I", len(entry)) + entry, priority=1)


@given(props=st.binary(max_size=60) | st.binary(max_size=40).map(lambda rest: b"\xe0\x00" + rest))
def test_both_twins_filter_alike_whatever_the_headers(plain: ModuleType, fast: ModuleType, props: bytes) -> None:
    said = []
    for kernel in (plain, fast):
        readers = Readers(World(kernel))
        readers.put(b"x", props=props)
        readers.consumer.seek(0)
        readers.world.engine.deliver(0)
        said.append(readers.channel.session.take())
    assert said[0] == said[1]


def test_bodies_are_split_at_the_frame_size(world: World) -> None:
    stream = world.queue(logged=True, stream=True)
    channel = world.channel(world.session(frame_max=16))
    world.consumer(channel, stream).seek(0)
    world.put(stream, b"x" * 50, b"", b"y" * 8)
    assert world.bodies(channel.session) == []
    assert world.bodies(channel.session) == [b"x" * 50, b"", b"y" * 8]


def test_a_full_session_makes_its_readers_rest(world: World) -> None:
    readers = Readers(world)
    session = readers.channel.session
    session.out_bytes_max = 150
    readers.consumer.seek(0)
    readers.put(*(b"%d" % number for number in range(6)))
    taken = []
    for _ in range(6):
        world.engine.deliver(world.now_ms)
        assert session.pending_bytes <= 150 + 100
        taken.append([event.body for event in read(session.take())])
    assert [len(some) for some in taken] == [2, 2, 2, 0, 0, 0]
    session.pause()
    readers.put(b"6")
    assert readers.got() == []
    session.resume()
    assert readers.got() == [b"6"]


def test_readers_of_one_session_have_their_turns(world: World) -> None:
    readers = Readers(world)
    other = world.consumer(readers.channel, readers.stream)
    readers.consumer.seek(0)
    other.seek(0)
    readers.put(*(b"" for _ in range(READ_BURST + 10)))
    world.engine.deliver(world.now_ms)
    order = [event.consumer for event in read(readers.channel.session.take())]
    assert order == [b"c0"] * READ_BURST + [b"c1"] * READ_BURST + [b"c0"] * 10 + [b"c1"] * 10


def test_only_streams_are_read_by_offset(world: World) -> None:
    consumer = world.consumer(world.channel(), world.queue())
    assert consumer.next_offset == -1
    with pytest.raises(ValueError, match="stream"):
        consumer.seek(0)
    with pytest.raises(ValueError, match="stream"):
        consumer.read_from(world.kernel.Chunk())
    with pytest.raises(ValueError, match="offset"):
        Readers(world).consumer.seek(-1)
