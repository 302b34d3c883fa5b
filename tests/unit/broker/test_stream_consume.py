"""Readers of a stream: where they begin, what they leave out, how far they go."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from pandomq import methods
from pandomq.fieldtable import Int32, Int64L, Timestamp
from pandomq.limits import STREAM_TIME_S_MAX
from pandomq.properties import Properties
from tests.unit.broker.conversation import NOW_MS, World
from tests.unit.broker.stream_scene import (
    FILTER_VALUE,
    STREAM,
    declared,
    fill,
    heard_offsets,
    stream_of,
    stream_world,
)

RESOURCE = "queue 's' in vhost '/'"


def consume(**arguments: Any) -> methods.BasicConsume:
    return methods.BasicConsume(
        "s", "t", arguments={f"x-stream-{name.replace('_', '-')}": value for name, value in arguments.items()}
    )


@pytest.mark.parametrize(
    ("offset", "offsets"),
    [
        ("first", [0, 1, 2, 3, 4, 5]),
        ("last", [4, 5]),
        ("next", [5]),
        (None, [5]),
        (Int32(3), [3, 4, 5]),
        (0, [0, 1, 2, 3, 4, 5]),
        (5, [5]),
        (Timestamp(NOW_MS // 1000), [0, 1, 2, 3, 4, 5]),
        (Timestamp(NOW_MS // 1000 + 2), [2, 3, 4, 5]),
        (Timestamp(NOW_MS // 1000 + 3600), [5]),
        ("1h", [0, 1, 2, 3, 4, 5]),
        ("2s", [3, 4, 5]),
    ],
)
def test_a_reader_begins_where_it_wants_to(offset: Any, offsets: list[int]) -> None:
    world = World()
    peer = declared(world)
    for _ in range(5):
        fill(peer, 1)
        world.now_ms += 1000
    peer.send(consume() if offset is None else consume(offset=offset))
    fill(peer, 1)
    assert heard_offsets(peer) == offsets


@pytest.mark.proves("R38")
@pytest.mark.parametrize(
    "offset",
    [
        Timestamp(STREAM_TIME_S_MAX + 1),
        Timestamp(2**53),
        Timestamp(2**62),
        Timestamp(2**63),
        Timestamp(2**64 - 1),
        -1,
        -(2**63),
        Int32(-1),
        1.5,
        float("nan"),
        True,
        None,
        Decimal(1),
        b"first",
        [1],
        {},
        "",
        "First",
        "0s",
        "-1s",
        "1000000000000000s",
        "\u0663s",
    ],
)
def test_an_offset_out_of_bounds_is_refused_before_anything_changes(offset: Any) -> None:
    world = World()
    peer, bystander = declared(world), world.peer()
    fill(peer, 1)
    bystander.declare("other", durable=True)
    bystander.say_publish("", "other")
    asked = peer.say(consume(offset=offset)).take_inputs()
    world.run([(peer.client, asked), (bystander.client, bystander.take_inputs())])
    (close,) = peer.heard()
    assert isinstance(close, methods.ChannelClose)
    assert close.reply_code == 406
    assert close.reply_text.startswith(f"PRECONDITION_FAILED - invalid arg 'x-stream-offset' for {RESOURCE}: ")
    assert bystander.counts("other") == (1, 0)
    assert bystander.counts("s")[1] == 0


@pytest.mark.parametrize("offset", [Timestamp(STREAM_TIME_S_MAX), Int64L(2**63 - 1), 2**63 - 1, "999999999999999Y"])
def test_an_offset_at_its_bound_is_taken(offset: Any) -> None:
    world = World()
    peer = declared(world)
    fill(peer, 1)
    assert isinstance(peer.send(consume(offset=offset)).heard()[0], methods.BasicConsumeOk)
    fill(peer, 1)
    world.pass_time(1000)


def test_a_reader_may_be_early() -> None:
    peer = declared(World())
    peer.call(consume(offset=3), expect=methods.BasicConsumeOk)
    fill(peer, 5)
    assert heard_offsets(peer) == [3, 4]


@pytest.mark.parametrize(
    ("prefetch", "global_", "method", "code", "text"),
    [
        (0, False, consume(), 406, f"consumer prefetch count is not set for stream {RESOURCE}"),
        (5, False, consume(offset="soon"), 406, f"invalid arg 'x-stream-offset' for {RESOURCE}: invalid_max_age"),
        (5, False, consume(offset=Int32(-1)), 406, f"invalid arg 'x-stream-offset' for {RESOURCE}: invalid_offset_arg"),
        (5, False, consume(offset=True), 406, f"invalid arg 'x-stream-offset' for {RESOURCE}: invalid_offset_arg"),
        (
            5,
            False,
            methods.BasicConsume("s", "t", arguments={"x-priority": Int32(1)}),
            406,
            f"invalid arg 'x-priority' for {RESOURCE} of queue type rabbit_stream_queue",
        ),
        (
            5,
            False,
            methods.BasicConsume("s", "t", no_ack=True),
            540,
            f"automatic acknowledgement not supported by stream {RESOURCE}",
        ),
    ],
)
def test_requests_that_do_not_fit_a_stream_reader_are_refused(
    prefetch: int, global_: bool, method: methods.Method, code: int, text: str
) -> None:
    world = World()
    peer = world.peer()
    peer.declare("s", durable=True, arguments=STREAM)
    peer.call(methods.BasicQos(0, prefetch, global_), expect=methods.BasicQosOk)
    peer.send(method)
    if code == 540:
        assert (peer.fault().reply_code, peer.fault().reply_text) == (540, f"NOT_IMPLEMENTED - {text}")
    else:
        (close,) = peer.heard()
        assert isinstance(close, methods.ChannelClose)
        assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - {text}")


def test_no_limit_for_the_whole_channel() -> None:
    peer = declared(World())
    peer.call(methods.BasicQos(0, 10, True), expect=methods.BasicQosOk)
    peer.send(consume())
    assert peer.fault().reply_text == f"NOT_IMPLEMENTED - {RESOURCE} does not support global qos"


def test_acks_are_credit_and_nothing_else() -> None:
    world = World()
    peer = declared(world)
    peer.call(methods.BasicQos(0, 2, False), expect=methods.BasicQosOk)
    fill(peer, 6)
    peer.send(consume(offset="first"))
    assert heard_offsets(peer) == [0, 1]
    peer.send(methods.BasicAck(1))
    assert heard_offsets(peer) == [2]
    peer.send(methods.BasicNack(2, False, True))
    assert heard_offsets(peer) == [3]
    peer.send(methods.BasicReject(3, True))
    assert heard_offsets(peer) == [4]
    peer.send(methods.BasicAck(0, True))
    assert heard_offsets(peer) == [5]
    peer.send(methods.BasicRecover(True))
    assert peer.heard() == [methods.BasicRecoverOk()]
    assert peer.counts("s") == (6, 1)


def test_many_readers_each_get_everything() -> None:
    world = World()
    writer = declared(world)
    readers = [world.peer() for _ in range(3)]
    for reader in readers:
        reader.call(methods.BasicQos(0, 100, False), expect=methods.BasicQosOk)
        reader.send(consume(offset="first"))
    fill(writer, 10)
    assert [heard_offsets(reader) for reader in readers] == [list(range(10))] * 3


def test_a_message_keeps_its_headers_and_gets_an_offset() -> None:
    world = World()
    peer = declared(world)
    peer.publish("", "s", b"body", Properties(headers={"a": "b"}, content_type="text/plain"))
    peer.send(consume(offset="first"))
    delivery = peer.hear()[1]
    assert isinstance(delivery.method, methods.BasicDeliver) and delivery.properties is not None
    assert delivery.properties.headers == {"a": "b", "x-stream-offset": 0}
    assert (delivery.properties.content_type, delivery.body) == ("text/plain", b"body")
    assert not delivery.method.redelivered


@pytest.mark.parametrize(
    ("wishes", "offsets"),
    [
        ({"filter": "red"}, [0, 3]),
        ({"filter": ["red", "blue"]}, [0, 1, 3]),
        ({"filter": "red", "match_unfiltered": True}, [0, 2, 3]),
        ({"filter": "green"}, []),
        ({"match_unfiltered": True}, [0, 1, 2, 3]),
    ],
)
def test_a_filter_lets_through_the_requested_values(wishes: dict[str, Any], offsets: list[int]) -> None:
    world = World()
    peer = declared(world)
    for value in ("red", "blue", None, "red"):
        peer.publish("", "s", b"x", None if value is None else Properties(headers={FILTER_VALUE: value}))
    peer.send(consume(offset="first", **wishes))
    assert heard_offsets(peer) == offsets


def test_a_reader_goes_from_chunk_to_chunk() -> None:
    world, _ = stream_world()
    peer = declared(world, stream_max_segment_size_bytes=300)
    fill(peer, 50, b"x" * 100)
    assert len(stream_of(world).index.rows) > 5
    peer.send(consume(offset="first"))
    assert heard_offsets(peer) == list(range(50))
    fill(peer, 5, b"x" * 100)
    assert heard_offsets(peer) == list(range(50, 55))


def test_a_reader_waits_for_the_disk() -> None:
    world, places = stream_world()
    peer = declared(world, stream_max_segment_size_bytes=300)
    fill(peer, 20, b"x" * 100)
    world.broker.state.chunk_cache._opened.clear()
    places.asked = []
    peer.send(consume(offset=4))
    assert heard_offsets(peer) == []
    assert len(places.asked) == 2, "the next chunk is asked for before it is wanted"
    heard: list[int] = []
    while places.asked:
        stored, on_bytes = places.asked.pop(0)
        on_bytes(stored.blob)
        world.run([])
        heard += heard_offsets(peer)
    assert heard == list(range(4, 20))


@pytest.mark.parametrize("asked_before", [True, False])
def test_a_chunk_at_which_one_reader_failed_comes_to_the_next_one(
    asked_before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, places = stream_world()
    peer = declared(world, stream_max_segment_size_bytes=300)
    fill(peer, 20, b"x" * 100)
    world.broker.state.chunk_cache._opened.clear()
    asked: list[Any] = []
    places.asked = asked
    fetch = places.fetch

    def fail(stored: Any, on_bytes: Any) -> None:
        if asked_before:
            fetch(stored, on_bytes)
        raise ZeroDivisionError

    monkeypatch.setattr(places, "fetch", fail)
    culprit = world.peer()
    culprit.call(methods.BasicQos(0, 1000, False), expect=methods.BasicQosOk)
    culprit.send(consume(offset=4))
    assert world.closed[culprit.client].reply_code == 541
    world.broker.containment.take()
    monkeypatch.setattr(places, "fetch", fetch)
    peer.send(consume(offset=4))
    heard: list[int] = []
    while asked:
        stored, on_bytes = asked.pop(0)
        on_bytes(stored.blob)
        world.run([])
        heard += heard_offsets(peer)
    assert heard == list(range(4, 20))


def test_slow_readers_do_not_keep_a_chunk_each(monkeypatch: pytest.MonkeyPatch) -> None:
    world, _ = stream_world()
    peer = declared(world, stream_max_segment_size_bytes=300)
    fill(peer, 60, b"x" * 100)
    cache = world.broker.state.chunk_cache
    cache._opened.clear()
    cache._opened_bytes = 0
    monkeypatch.setattr("pandomq.broker.streams.chunk_cache.STREAM_CACHE_BYTES_MAX", 4000)
    slow = [world.peer() for _ in range(10)]
    for number, reader in enumerate(slow):
        reader.call(methods.BasicQos(0, 1, False), expect=methods.BasicQosOk)
        reader.send(consume(offset=5 * number))
    assert [heard_offsets(reader) for reader in slow] == [[5 * number] for number in range(10)]
    assert cache.held_bytes <= 4000
    for step in range(1, 9):
        for reader in slow:
            reader.send(methods.BasicAck(step, False))
        world.run([])
        assert [heard_offsets(reader) for reader in slow] == [[5 * number + step] for number in range(10)]
        assert cache.held_bytes <= 4000


def test_a_reader_that_retention_overtakes_goes_on_with_what_is_left() -> None:
    world, places = stream_world()
    peer = declared(world, stream_max_segment_size_bytes=300, max_length_bytes=2000)
    fill(peer, 10, b"x" * 100)
    world.broker.state.chunk_cache._opened.clear()
    places.asked = []
    peer.send(consume(offset="first"))
    fill(peer, 40, b"x" * 100)
    assert places.asked == [], "it was told that the chunk is gone"
    places.asked = None
    world.run([])
    offsets = heard_offsets(peer)
    assert offsets[0] > 0
    assert offsets == list(range(offsets[0], 50))


def test_uncommitted_messages_are_not_read() -> None:
    world = World(late=True)
    peer = world.connect()
    peer.send(
        methods.ChannelOpen(), methods.QueueDeclare("s", durable=True, arguments=STREAM), methods.BasicQos(0, 9, False)
    )
    world.commit()
    peer.send(consume(offset="first"))
    peer.hear()
    peer.publish("", "s", b"0")
    assert heard_offsets(peer) == []
    assert stream_of(world).message_count == 0
    world.commit()
    assert heard_offsets(peer) == [0]
    assert stream_of(world).message_count == 1


@pytest.mark.parametrize("offset", ["first", Timestamp(0), "1h"])
def test_a_chunk_that_became_full_in_the_same_batch_is_read(offset: Any) -> None:
    world = World()
    peer = declared(world, stream_max_segment_size_bytes=100)
    peer.publish("", "s", bytes(200))
    peer.say_publish("", "s", b"begins another chunk")
    peer.say(consume(offset=offset)).flush()
    assert heard_offsets(peer) == [0, 1]
