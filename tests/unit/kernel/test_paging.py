"""Messages that are far from being delivered leave memory, and come back in time."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from tests.unit.kernel.frames import PERSISTENT, ack, headers, nack, properties, read
from tests.unit.kernel.world import World


def bodies(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


@pytest.fixture
def paged(world: World) -> World:
    """Everything that may leave memory does, three messages a page."""
    world.use_pages(page_messages=3)
    return world


def fill(world: World, queue: Any, count: int, **options: Any) -> None:
    """The first message has the body 1; in the end all are in pages."""
    world.put(queue, *bodies(*range(1, count + 1)), **options)
    world.end_batch()
    world.page_out()


def drain(world: World, session: Any) -> list[bytes]:
    """Returns the bodies that a consumer receives until it would wait for more."""
    got = []
    while True:
        got += [event.body for event in read(session.take())]
        world.engine.deliver(world.now_ms)
        if not world.load() and not session.pending_bytes:
            return got


def test_paged_out_messages_are_not_counted_as_held(paged: World) -> None:
    queue = paged.queue()
    fill(paged, queue, 9)
    assert (queue.ready_count, queue.ready_bytes) == (9, 9)
    assert paged.engine.held_messages == paged.engine.held_bytes == paged.engine.ready_bytes == 0
    assert [page.count for page in queue.pages()] == [3, 3, 3]
    assert queue.snapshot() == []
    assert queue.head_missing


def test_without_a_limit_nothing_leaves(paged: World) -> None:
    paged.engine.paging_bytes = 0
    queue = paged.queue()
    fill(paged, queue, 9)
    assert queue.pages() == []
    assert paged.engine.ready_bytes == 0


def test_below_the_limit_nothing_leaves(paged: World) -> None:
    paged.engine.paging_bytes = 1 << 20
    queue = paged.queue()
    fill(paged, queue, 9)
    assert queue.pages() == []
    assert paged.engine.ready_bytes == sum(256 + 14 + 1 for _ in range(9))


def test_the_first_pages_worth_of_a_long_queue_stays_while_others_are_long(paged: World) -> None:
    paged.engine.paging_bytes = 2700
    long, short = paged.queue(), paged.queue()
    paged.put(short, b"a", b"b")
    fill(paged, long, 12)
    assert [len(queue.snapshot()) for queue in (long, short)] == [6, 2]
    assert paged.ready(long) == bodies(1, 2, 3, 4, 5, 6)


def test_page_out_stops_at_so_many_bytes(paged: World) -> None:
    queue = paged.queue()
    paged.put(queue, *bodies(*range(1, 13)))
    paged.end_batch()
    assert len(paged.page_out(1)) == 1
    assert len(paged.page_out(1)) == 1
    assert len(paged.page_out()) == 2


def test_a_consumer_gets_everything_in_order(paged: World) -> None:
    queue = paged.queue()
    fill(paged, queue, 10)
    paged.put(queue, *bodies(11, 12))
    channel = paged.channel()
    paged.consumer(channel, queue)
    assert drain(paged, channel.session) == bodies(*range(1, 13))
    assert sorted(paged.freed) == sorted(paged.paged)


def test_two_pages_are_wanted_at_once_and_may_come_in_any_order(paged: World) -> None:
    queue = paged.queue()
    fill(paged, queue, 9)
    channel = paged.channel()
    paged.consumer(channel, queue)
    assert paged.bodies(channel.session) == []
    assert [page.owner for page in paged.engine.wanted] == [page.owner for page in queue.pages()[:2]]
    paged.load(1)
    assert paged.bodies(channel.session) == []
    paged.load()
    assert paged.bodies(channel.session) == bodies(1, 2, 3, 4, 5, 6)


def test_no_pages_are_wanted_without_a_consumer(paged: World) -> None:
    queue = paged.queue()
    fill(paged, queue, 9)
    paged.put(queue, b"10")
    paged.end_batch()
    assert paged.engine.wanted == []


def test_basic_get_waits_for_the_head(paged: World) -> None:
    queue, channel = paged.queue(), paged.channel()
    fill(paged, queue, 3)
    assert queue.take(channel, True, paged.now_ms) is None
    assert queue.head_missing
    assert paged.load()
    got = queue.take(channel, True, paged.now_ms)
    assert got is not None
    assert (got[2].body, got[3]) == (b"1", 2)


def test_a_message_that_comes_back_between_pages_keeps_its_place(paged: World) -> None:
    queue, channel = paged.queue(), paged.channel()
    paged.put(queue, *bodies(*range(1, 7)))
    consumer = paged.consumer(channel, queue, prefetch=5)
    assert paged.bodies(channel.session) == bodies(1, 2, 3, 4, 5)
    consumer.cancel()
    # All but 3 come back and leave memory; then 3 comes back among them.
    paged.feed(channel.session, b"".join(nack(tag, False, True) for tag in (1, 2, 4, 5)))
    paged.end_batch()
    paged.page_out()
    paged.feed(channel.session, nack(3, False, True))
    paged.consumer(channel, queue)
    assert drain(paged, channel.session) == bodies(1, 2, 3, 4, 5, 6)


def test_priorities_come_first_also_from_pages(paged: World) -> None:
    queue, channel = paged.queue(priority_max=5), paged.channel()
    for priority in (1, 5, 3):
        paged.put(queue, *[b"%d" % priority] * 4, props=properties(priority=priority))
    paged.end_batch()
    paged.page_out()
    paged.consumer(channel, queue)
    assert drain(paged, channel.session) == [b"5"] * 4 + [b"3"] * 4 + [b"1"] * 4


def test_flags_counts_and_deadlines_survive_the_page(paged: World) -> None:
    queue, channel = paged.queue(ttl_ms=60), paged.channel()
    paged.put(queue, b"1", b"2", props=PERSISTENT)
    paged.consumer(channel, queue).cancel()
    queue.take(channel, False, paged.now_ms)
    paged.feed(channel.session, nack(1, False, True))
    before = [(*row[:5], paged.name(row[5])) for row in queue.snapshot()]
    paged.end_batch()
    paged.page_out()
    assert queue.snapshot() == []
    queue.take(channel, False, paged.now_ms)
    paged.load()
    assert [(*row[:5], paged.name(row[5])) for row in queue.snapshot()] == before


def test_expiry_waits_for_the_page_and_dead_letters_are_whole(paged: World) -> None:
    queue = paged.queue(ttl_ms=10, dead_letters=True)
    fill(paged, queue, 4)
    assert queue.next_deadline_ms == paged.now_ms + 10
    paged.now_ms += 10
    queue.expire(paged.now_ms)
    assert paged.take_dead() == []
    # Nothing is to be done before the page is there, so there is no time to wait for.
    assert queue.next_deadline_ms > paged.now_ms + 1000
    while paged.load():
        paged.end_batch()
    assert [row[1] for row in paged.take_dead()] == bodies(1, 2, 3, 4)
    assert queue.ready_count == 0


def test_a_length_limit_waits_for_the_page(paged: World) -> None:
    queue = paged.queue(length_max=4, dead_letters=True)
    fill(paged, queue, 4)
    paged.put(queue, b"5", b"6")
    while paged.load():
        paged.end_batch()
    assert [row[1] for row in paged.take_dead()] == bodies(1, 2)
    assert queue.ready_count == 4


def test_purge_and_delete_need_no_page(paged: World) -> None:
    queues = [paged.queue(logged=True), paged.queue(logged=True)]
    for queue in queues:
        fill(paged, queue, 9, props=PERSISTENT)
    assert [queues[0].purge(), queues[1].delete()] == [9, 9]
    assert paged.engine.wanted == []
    paged.forget_freed()
    assert sorted(paged.freed) == sorted(paged.paged)
    entry = paged.end_batch()
    assert entry is not None
    # One range, of one queue: a deletion is logged as a command.
    assert len(entry) == 13 + 21


def test_loading_a_page_of_removed_messages_does_nothing(paged: World) -> None:
    queue, channel = paged.queue(), paged.channel()
    fill(paged, queue, 3)
    queue.take(channel, True, paged.now_ms)
    queue.purge()
    assert paged.load()
    assert queue.ready_count == paged.engine.held_messages == 0


def test_when_the_page_that_was_waited_for_goes_the_next_is_wanted(paged: World) -> None:
    queue, channel = paged.queue(), paged.channel()
    fill(paged, queue, 9)
    paged.consumer(channel, queue)
    paged.end_batch()
    queue.drop(1, 6)
    assert drain(paged, channel.session) == bodies(7, 8, 9)


def test_a_last_value_queue_replaces_messages_in_a_page(paged: World) -> None:
    queue, channel = paged.queue(last_value_key=b"k"), paged.channel()
    for body, key in ((b"1", b"a"), (b"2", b"b"), (b"3", b"c")):
        paged.put(queue, body, props=properties(table=headers(k=key)))
    paged.end_batch()
    paged.page_out()
    paged.put(queue, b"4", props=properties(table=headers(k=b"b")))
    assert (queue.ready_count, queue.dropped) == (3, 1)
    paged.consumer(channel, queue)
    assert drain(paged, channel.session) == bodies(1, 3, 4)


def test_withdrawable_messages_stay(paged: World) -> None:
    queue = paged.queue(withdrawable=True)
    fill(paged, queue, 9)
    assert queue.pages() == []
    assert queue.withdraw(5).body == b"5"


@pytest.mark.parametrize("exact", [True, False], ids=["clean end", "crash"])
def test_pages_outlive_a_restart(kernel_world: Callable[[], World], exact: bool) -> None:
    before = kernel_world()
    before.use_pages(page_messages=3)
    queue = before.queue(logged=True)
    fill(before, queue, 9, props=PERSISTENT)
    before.put(queue, b"passing")
    queue.drop(2, 3)
    indexes = [(page.index(), page.owner) for page in queue.pages()]
    after = kernel_world()
    after.blobs = before.blobs
    revived, channel = after.queue(logged=True), after.channel()
    for index, owner in indexes:
        revived.reinstate_page(index, owner)
    assert (revived.ready_count, revived.ready_bytes, revived.next_sequence) == (6, 6, 10)
    if not exact:
        revived.suspect()
    after.consumer(channel, revived, no_ack=True)
    assert drain(after, channel.session) == bodies(1, 5, 6, 7, 8, 9)
    assert revived.redelivered == (0 if exact else 6)


def test_passing_messages_are_in_no_index(paged: World) -> None:
    queue = paged.queue()
    fill(paged, queue, 3)
    assert queue.pages()[0].index() is None
    paged.put(queue, b"4", props=PERSISTENT)
    paged.put(queue, b"5", b"6")
    paged.end_batch()
    paged.page_out()
    index = queue.pages()[1].index()
    assert index is not None
    assert paged.queue().reinstate_page(index, None).count == 1


def test_an_index_of_something_else_is_refused(paged: World) -> None:
    queue, other = paged.queue(), paged.queue(last_value_key=b"k")
    fill(paged, queue, 4, props=PERSISTENT)
    first, second = (page.index() for page in queue.pages())
    for index in ((b"", b""), (first[0][:-1], first[1]), (first[0], b""), (first[0], first[1] + b"x")):
        with pytest.raises(ValueError, match="page"):
            paged.queue().reinstate_page(index, None)
    with pytest.raises(ValueError, match="not a page of this queue"):
        other.reinstate_page(first, None)
    revived = paged.queue()
    revived.reinstate_page(second, None)
    with pytest.raises(ValueError, match="overlap"):
        revived.reinstate_page(second, None)
    paged.put(revived, b"late")
    with pytest.raises(ValueError, match="after messages"):
        revived.reinstate_page(first, None)


def test_a_page_of_like_messages_costs_next_to_nothing_in_memory_and_snapshots(world: World) -> None:
    world.use_pages(page_messages=4096)
    queue = world.queue()
    fill(world, queue, 0)
    world.put(queue, *[b"x" * 16] * 4096, props=PERSISTENT)
    world.end_batch()
    (data,) = world.page_out()
    (page,) = queue.pages()
    assert [len(part) for part in page.index()] == [28, 1]
    assert len(data) < 4096 * (16 + 10)
    queue.drop(7, 1)
    assert [len(part) for part in page.index()] == [28, 1 + 512]


def test_pages_leave_nothing_behind(fast: ModuleType) -> None:
    world = World(fast)
    world.use_pages()
    message = world.message(b"x", PERSISTENT)
    base = sys.getrefcount(message)
    queue, channel = world.queue(), world.channel()
    for _ in range(8):
        world.engine.enqueue(None, message, (queue,), 0, world.now_ms)
    world.end_batch()
    world.page_out()
    assert sys.getrefcount(message) == base
    consumer = world.consumer(channel, queue)
    assert len(drain(world, channel.session)) == 8
    consumer.cancel()
    world.feed(channel.session, nack(5, True, True) + ack(0, True))
    world.end_batch()
    world.page_out()
    world.put(queue, b"y")
    queue.owner = Owner()
    alive = weakref.ref(queue.owner)
    assert queue.pages()
    del queue, channel, consumer, world
    gc.collect()
    assert alive() is None


class Owner:
    """Goes with its queue."""
