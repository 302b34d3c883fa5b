"""The rows of a trace for each step of a message."""

from __future__ import annotations

from typing import Any

from pandomq.kernel import constants
from pandomq.trace_form import (
    SAMPLE_WHOLE,
    Event,
    Kind,
    Reason,
    decode_events,
    is_sampled,
    join_batch,
    sample_threshold,
)
from tests.unit.kernel.frames import PERSISTENT, ack, nack, publish, reject
from tests.unit.kernel.world import World

ROOM = 1 << 20


def traced(world: World, threshold: int = SAMPLE_WHOLE, room: int = ROOM, **settings: Any) -> tuple[Any, Any, Any]:
    """A trace, a traced queue k, and a channel of a traced session."""
    trace = world.kernel.Trace(world.engine, threshold, room)
    queue = world.queue("k", **settings)
    queue.trace, queue.label = trace, b"the queue"
    channel = world.channel()
    channel.session.trace, channel.session.label = trace, b"peer"
    world.engine.time_us = 5_000_000
    return trace, queue, channel


def rows(trace: Any) -> list[Event]:
    count, dropped, columns, queues, routings, consumers = trace.take()
    body = join_batch(
        broker="n1",
        term=1,
        number=0,
        dropped=dropped,
        sample=1.0,
        count=count,
        columns=columns,
        queues=queues,
        routings=routings,
        consumers=consumers,
        texts=[],
    )
    return list(decode_events(body).rows())


def kinds(trace: Any) -> list[tuple[Kind, int]]:
    return [(row.kind, row.sequence) for row in rows(trace)]


def test_a_publish_a_delivery_and_an_ack(world: World) -> None:
    trace, queue, channel = traced(world)
    world.feed(channel.session, publish(b"k", b"body"))
    world.end_batch()
    world.engine.time_us, world.now_ms = 5_250_000, 5_250
    world.consumer(channel, queue)
    world.end_batch()
    world.engine.time_us = 5_300_000
    world.feed(channel.session, ack(1))
    common = Event(Kind.PUBLISHED, Reason.NONE, 5_000_000, "the queue", 1, 1, "", "k", "", "", 4, 0, "")
    consumed = common._replace(consumer_tag="c0", connection="peer")
    assert rows(trace) == [
        common,
        consumed._replace(kind=Kind.DELIVERED, time_us=5_250_000, since_us=250_000),
        consumed._replace(kind=Kind.ACKED, time_us=5_300_000, since_us=300_000, held_us=50_000),
    ]
    assert (trace.count, trace.size_bytes, rows(trace)) == (0, 0, [])


def test_requeued_messages_are_traced_as_redelivered(world: World) -> None:
    trace, queue, channel = traced(world)
    world.put(queue, b"a")
    world.consumer(channel, queue)
    world.end_batch()
    world.feed(channel.session, nack(1, False, True))
    world.end_batch()
    channel.close(world.now_ms)
    expected = [
        Kind.PUBLISHED,
        Kind.DELIVERED,
        Kind.REQUEUED,
        Kind.REDELIVERED,
        Kind.REQUEUED,
    ]
    assert kinds(trace) == [(kind, 1) for kind in expected]


def test_a_get_has_no_consumer(world: World) -> None:
    trace, queue, channel = traced(world)
    world.put(queue, b"a")
    queue.take(channel, False, world.now_ms)
    world.feed(channel.session, ack(1))
    assert [(row.kind, row.connection) for row in rows(trace)] == [
        (Kind.PUBLISHED, ""),
        (Kind.DELIVERED, ""),
        (Kind.ACKED, ""),
    ]


def test_a_queue_without_a_trace_writes_no_rows(world: World) -> None:
    trace, _, channel = traced(world)
    other = world.queue("other")
    world.feed(channel.session, publish(b"other", b"body"))
    world.consumer(channel, other)
    world.end_batch()
    assert kinds(trace) == []


def test_messages_without_a_queue_are_traced_as_unroutable(world: World) -> None:
    trace, _, channel = traced(world)
    world.feed(channel.session, publish(b"nowhere", b"body") + publish(b"nowhere", b"more"))
    found = rows(trace)
    assert [(row.kind, row.routing_key, row.size, row.queue) for row in found] == [
        (Kind.UNROUTABLE, "nowhere", 4, "")
    ] * 2


def test_confirms_come_when_they_are_given(world: World) -> None:
    trace, _, channel = traced(world, logged=True)
    channel.mode = constants.CONFIRM
    world.feed(channel.session, publish(b"k", b"a", PERSISTENT) + publish(b"k", b"b", PERSISTENT))
    world.end_batch(commit=False)
    assert kinds(trace) == [(Kind.PUBLISHED, 1), (Kind.PUBLISHED, 2)]
    world.engine.time_us += 700
    world.engine.committed(world.index)
    found = rows(trace)
    assert [(row.kind, row.sequence, row.since_us) for row in found] == [
        (Kind.CONFIRMED, 1, 700),
        (Kind.CONFIRMED, 2, 700),
    ]
    world.engine.committed(world.index)
    assert kinds(trace) == []


def test_confirms_that_overtake_others(world: World) -> None:
    trace, _, channel = traced(world, logged=True)
    world.engine.replicated = True
    channel.mode = constants.CONFIRM
    world.feed(channel.session, publish(b"k", b"a", PERSISTENT) + publish(b"k", b"b"))
    world.end_batch(commit=False)
    world.engine.received(world.index)
    assert kinds(trace)[2:] == [(Kind.CONFIRMED, 2)]
    world.engine.committed(world.index)
    assert kinds(trace) == [(Kind.CONFIRMED, 1)]


def test_refused_messages_are_not_traced_as_confirmed(world: World) -> None:
    trace, _, channel = traced(world, length_max=1, overflow=1)
    channel.mode = constants.CONFIRM
    world.feed(channel.session, publish(b"k", b"a") + publish(b"k", b"b"))
    world.end_batch()
    assert kinds(trace) == [(Kind.PUBLISHED, 1), (Kind.REFUSED, 0), (Kind.CONFIRMED, 1)]


def test_confirms_to_a_lost_publisher_are_not_traced(world: World) -> None:
    trace, _, channel = traced(world, logged=True)
    channel.mode = constants.CONFIRM
    world.feed(channel.session, publish(b"k", b"a", PERSISTENT))
    world.end_batch(commit=False)
    channel.close(world.now_ms)
    world.engine.committed(world.index)
    assert kinds(trace) == [(Kind.PUBLISHED, 1)]


def test_dead_lettered_messages_are_traced_with_the_reason(world: World) -> None:
    trace, queue, channel = traced(world, dead_letters=True, length_max=2, ttl_ms=10, delivery_limit=0)
    world.put(queue, b"a", b"b", b"c")
    queue.take(channel, False, world.now_ms)
    queue.take(channel, False, world.now_ms)
    world.feed(channel.session, reject(1, False) + reject(2, True))
    world.put(queue, b"d")
    world.now_ms += 11
    queue.expire(world.now_ms)
    dead = [(row.reason, row.sequence) for row in rows(trace) if row.kind == Kind.DEAD_LETTERED]
    assert dead == [
        (Reason.MAXLEN, 1),
        (Reason.REJECTED, 2),
        (Reason.DELIVERY_LIMIT, 3),
        (Reason.EXPIRED, 4),
    ]


def test_dead_messages_without_a_dead_letter_exchange_are_traced(world: World) -> None:
    trace, queue, _ = traced(world, length_max=1, ttl_ms=10)
    world.put(queue, b"a", b"b")
    world.now_ms += 11
    queue.expire(world.now_ms)
    found = [(row.kind, row.reason, row.sequence) for row in rows(trace)][2:]
    assert found == [(Kind.DROPPED, Reason.MAXLEN, 1), (Kind.EXPIRED, Reason.EXPIRED, 2)]


def test_a_stream_is_read_and_stays(world: World) -> None:
    trace, queue, channel = traced(world, logged=True, stream=True)
    world.engine.time_us = world.now_ms * 1000
    world.feed(channel.session, publish(b"k", b"first") + publish(b"k", b"second"))
    consumer = world.consumer(channel, queue)
    consumer.seek(0)
    world.end_batch()
    world.engine.time_us += 300
    world.end_batch()
    world.feed(channel.session, ack(1))
    found = [(row.kind, row.sequence, row.routing_key, row.size, row.since_us) for row in rows(trace)]
    assert found == [
        (Kind.PUBLISHED, 1, "k", 5, 0),
        (Kind.PUBLISHED, 2, "k", 6, 0),
        (Kind.DELIVERED, 1, "k", 5, 300),
        (Kind.DELIVERED, 2, "k", 6, 300),
        (Kind.ACKED, 1, "", 0, -1),
    ]


def test_of_a_message_that_is_sampled_each_step_is_there(world: World) -> None:
    threshold = sample_threshold(0.1)
    trace, queue, channel = traced(world, threshold)
    world.consumer(channel, queue)
    for number in range(100):
        world.put(queue, b"%d" % number)
    world.end_batch()
    world.feed(channel.session, ack(0, True))
    sampled = [sequence for sequence in range(1, 101) if is_sampled(sequence, threshold)]
    steps = {kind: [row.sequence for row in found if row.kind == kind] for found in [rows(trace)] for kind in Kind}
    assert 8 <= len(sampled) <= 12
    assert steps[Kind.PUBLISHED] == steps[Kind.DELIVERED] == steps[Kind.ACKED] == sampled


def test_rows_without_room_are_counted(world: World) -> None:
    trace, queue, _ = traced(world, room=200)
    world.put(queue, *(b"%d" % number for number in range(10)))
    count, dropped, *_ = trace.take()
    assert (count + dropped, trace.dropped) == (10, 0)
    assert 0 < count <= 4
    world.put(queue, b"again")
    assert trace.count == 1


def test_a_message_for_many_queues_has_a_publish_for_each(world: World) -> None:
    trace, _, channel = traced(world)
    for number in range(6):
        queue = world.queue("fan")
        queue.trace, queue.label = trace, b"%d" % number
        world.consumer(channel, queue, no_ack=True)
    world.feed(channel.session, publish(b"fan", b"body"))
    found = rows(trace)
    expected = [(kind, f"{number}") for number in range(6) for kind in (Kind.PUBLISHED, Kind.DELIVERED)]
    assert [(row.kind, row.queue) for row in found] == expected


def test_messages_enqueued_before_the_trace_have_no_age(world: World) -> None:
    trace, queue, channel = traced(world)
    queue.trace = None
    world.put(queue, b"a")
    queue.trace = trace
    queue.take(channel, True, world.now_ms)
    assert [row.since_us for row in rows(trace)] == [-1]
