"""Local queues: while several brokers keep the log, it has no record of the messages that enter them."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq.kernel import constants
from pandomq.kernel.records import DequeueRecord, EnqueueRecord, decode_entry
from tests.unit.kernel.frames import PERSISTENT, Confirmed, ack, publish, read
from tests.unit.kernel.world import World

NOT_PERSISTENT = b"\0\0"
MODES = pytest.mark.parametrize("props", [PERSISTENT, NOT_PERSISTENT])


def records(entry: bytes | None) -> list[Any]:
    return [] if entry is None else list(decode_entry(entry).records)


def local_queue(world: World, key: str = "l", **settings: Any) -> Any:
    world.engine.replicated = True
    return world.queue(key, logged=True, local=True, **settings)


@MODES
def test_a_message_enters_and_leaves_without_a_record(world: World, props: bytes) -> None:
    queue = local_queue(world)
    channel = world.channel()
    consumer = world.consumer(channel, queue)
    world.feed(channel.session, publish(b"l", b"x", props))
    assert world.end_batch() is None
    assert consumer.unacked_count == 1
    world.feed(channel.session, ack(1))
    assert world.end_batch() is None
    assert (queue.acked, queue.ready_count, queue.unacked_count) == (1, 0, 0)


@MODES
def test_a_purge_and_an_expiry_leave_no_record(world: World, props: bytes) -> None:
    queue = local_queue(world, ttl_ms=5)
    world.put(queue, b"1", props=props)
    queue.purge()
    world.put(queue, b"2", props=props)
    world.now_ms += 10
    assert world.end_batch() is None
    assert queue.ready_count == 0


@MODES
def test_a_confirm_does_not_wait_for_the_log(world: World, props: bytes) -> None:
    local_queue(world)
    channel = world.channel(mode=constants.CONFIRM)
    world.feed(channel.session, publish(b"l", b"x", props))
    world.end_batch(commit=False)
    assert read(channel.session.take()) == [Confirmed(1, True, 1, False)]


@MODES
def test_a_message_for_a_local_and_another_queue_is_logged_for_the_other_one(world: World, props: bytes) -> None:
    local, logged = local_queue(world, "k"), world.queue("k", logged=True)
    channel = world.channel()
    world.feed(channel.session, publish(b"k", b"x", props))
    [record] = records(world.end_batch())
    assert isinstance(record, EnqueueRecord)
    assert list(record.places) == [(logged.queue_id, 1)]
    local.purge()
    assert world.end_batch() is None
    logged.purge()
    assert records(world.end_batch()) == [DequeueRecord(logged.queue_id, 1, 1)]


def test_a_queue_that_becomes_local_logs_the_exits_of_earlier_messages_only(world: World) -> None:
    world.engine.replicated = True
    queue = world.queue("k", logged=True)
    world.put(queue, b"1", b"2")
    assert len(records(world.end_batch())) == 2
    queue.configure(local=True)
    world.put(queue, b"3", b"4")
    assert world.end_batch() is None
    queue.purge()
    assert records(world.end_batch()) == [DequeueRecord(queue.queue_id, 1, 2)]


def test_a_queue_that_is_local_no_more_logs_the_exits_of_later_messages_only(world: World) -> None:
    queue = local_queue(world)
    world.put(queue, b"1", b"2", props=PERSISTENT)
    queue.configure()
    world.put(queue, b"3")
    assert len(records(world.end_batch())) == 1
    queue.purge()
    assert records(world.end_batch()) == [DequeueRecord(queue.queue_id, 3, 1)]


def test_on_a_lone_broker_persistent_messages_are_logged(world: World) -> None:
    queue = local_queue(world)
    world.engine.replicated = False
    world.put(queue, b"1", props=PERSISTENT)
    world.put(queue, b"2")
    assert [list(record.places) for record in records(world.end_batch())] == [[(queue.queue_id, 1)]]


def test_a_full_local_queue_refuses(world: World) -> None:
    queue = local_queue(world, length_max=1, overflow=1)
    assert world.put(queue, b"1", props=PERSISTENT)
    assert not world.put(queue, b"2", props=PERSISTENT)
    assert world.end_batch() is None


@MODES
def test_pages_of_a_local_queue_are_in_no_snapshot(world: World, props: bytes) -> None:
    world.use_pages(page_messages=2)
    queue = local_queue(world)
    world.put(queue, *(b"%d" % number for number in range(8)), props=props)
    world.end_batch()
    world.page_out()
    assert queue.pages()
    assert all(page.index() is None for page in queue.pages())


@MODES
def test_places_of_a_transaction_are_not_logged(world: World, props: bytes) -> None:
    queue = local_queue(world)
    message = world.message(b"x", props)
    accepted, places = world.engine.prepare(None, message, (queue,), 0, world.now_ms, True)
    assert accepted
    world.engine.admit(message, places)
    assert world.end_batch() is None
    queue.purge()
    assert world.end_batch() is None


@pytest.mark.parametrize("replicated", [True, False])
def test_a_full_local_queue_that_drops_from_its_head_refuses_nothing(world: World, replicated: bool) -> None:
    queue, other = local_queue(world, "k", length_max=1), world.queue("k", logged=True)
    world.engine.replicated = replicated
    channel = world.channel(mode=constants.CONFIRM)
    for body in (b"1", b"2"):
        world.feed(channel.session, publish(b"k", body, PERSISTENT))
    world.end_batch()
    assert read(channel.session.take()) == [Confirmed(1, True, 2, True)]
    message = world.message(b"3", PERSISTENT)
    accepted, places = world.engine.prepare(None, message, (queue,), 0, world.now_ms, False)
    world.engine.admit(message, places)
    world.end_batch()
    assert accepted
    assert (queue.ready_count, other.ready_count) == (1, 2)
    assert [row[-1].body for row in queue.snapshot()] == [b"3"]
