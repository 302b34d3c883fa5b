"""One user takes a bounded part of what there is for all: attempts, queries, leases, stored offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from pandomq.broker.leases.asks import LeaseAsk
from pandomq.broker.limits import BrokerLimits, TableLimits
from pandomq.broker.log.commands import DeleteUser, StoreOffset, decode_command
from pandomq.broker.log.snapshot import KeptStream
from pandomq.errors import Fault
from pandomq.methods import QueueDelete, QueueDeleteOk
from tests.unit.broker.conversation import World
from tests.unit.broker.staging_scene import COMMITTED, STAGED, Sink, frames, prepared
from tests.unit.broker.stream_scene import declared
from tests.unit.broker.test_snapshot import restored


def limited(**limits: Any) -> BrokerLimits:
    return BrokerLimits(**limits)


def refused(ask: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(Fault) as fault:
        ask()
    return fault.value.reply_code, fault.value.reply_text


@pytest.mark.proves("R38")
def test_attempts_of_one_user_are_bounded() -> None:
    world, sink = prepared(limits=limited(staged_attempts_per_user_max=2))
    world.admit("mallory")
    mallory = Sink(world, user="mallory", query="m")
    for attempt in ("1", "2"):
        mallory.stage(b"", attempt=attempt)
    code, text = refused(lambda: mallory.stage(b"", attempt="3"))
    assert (code, "staged_attempts_per_user_max (2) is reached" in text) == (406, True)
    mallory.stage(frames("more"), 1, attempt="2")
    sink.stage(frames("1"))
    sink.commit((0, "a", 1))
    assert sink.heard() == [STAGED, COMMITTED]
    mallory.drop((0, "1"))
    mallory.stage(b"", attempt="3")


@pytest.mark.proves("R38")
def test_the_staged_messages_of_one_user_are_bounded() -> None:
    part = frames("x" * 100)
    world, sink = prepared(limits=limited(staged_per_user_bytes_max=2 * len(part)))
    world.admit("mallory")
    mallory = Sink(world, user="mallory", query="m")
    mallory.stage(part)
    mallory.stage(part, partition=1)
    code, text = refused(lambda: mallory.stage(part, 1))
    assert (code, "staged_per_user_bytes_max" in text) == (406, True)
    # A part that is there is not staged again, and needs no room.
    mallory.stage(part)
    sink.stage(part)
    mallory.commit((0, "a", 1), (1, "a", 1))
    mallory.stage(part, batch=1)
    assert mallory.heard() == [STAGED] * 3 + [COMMITTED, STAGED]


@pytest.mark.proves("S2")
def test_a_user_with_too_many_queries_forgets_its_own() -> None:
    world, sink = prepared(limits=limited(tables=TableLimits(staged_queries_per_user_max=2)))
    world.admit("mallory")
    sink.commit(batch=7)
    for query in "abcd":
        Sink(world, user="mallory", query=query).commit(batch=1)
    assert sink.last_batch() == 7
    last = {query: Sink(world, user="mallory", query=query).last_batch() for query in "abcd"}
    assert last == {"a": -1, "b": -1, "c": 1, "d": 1}
    for other in (world, world.replayed(), restored(world)):
        assert [other.broker.state.staged.count_of(user) for user in ("guest", "mallory")] == [1, 2]


def lease(world: World, name: str, user: str) -> None:
    ask = LeaseAsk("/", "q", name, user, 10, 1000, 10_000)
    world.broker.leases.lease(ask, lambda view: None, world.now_ms)
    world.run([])


@pytest.mark.proves("R38")
def test_leases_of_one_user_are_bounded_on_an_empty_queue_too() -> None:
    world, _ = prepared(limits=limited(leases_per_user_max=2))
    for name in ("1", "2", "2"):
        lease(world, name, "mallory")
    code, text = refused(lambda: lease(world, "3", "mallory"))
    assert (code, "leases_per_user_max" in text) == (406, True)
    lease(world, "3", "guest")
    assert world.broker.leases.count_of("mallory") == world.replayed().broker.leases.count_of("mallory") == 2
    world.broker.leases.end("/", "q", "1", lambda view: None, world.now_ms)
    world.run([])
    lease(world, "4", "mallory")


def store(world: World, user: str, name: str, offset: int = 1, stream: str = "s") -> int:
    """The code of the refusal; 0 if it is stored."""
    faults: list[Fault | None] = []
    world.broker.streams.store_offset("/", stream, user, name, offset, faults.append, world.now_ms)
    world.run([])
    (fault,) = faults
    return 0 if fault is None else fault.reply_code


def offsets_of(world: World) -> tuple[dict[str, int], dict[str, str]]:
    stream = world.broker.streams.find("/", "s")
    assert stream is not None
    return stream.stored_offsets, stream.offsets.users()


@pytest.mark.proves("R38")
def test_the_name_of_a_stored_offset_belongs_to_the_user_who_stored_it_first() -> None:
    world = World()
    declared(world)
    for user in ("ann", "mallory"):
        world.admit(user)
    assert store(world, "ann", "reader", 5) == 0
    assert store(world, "mallory", "reader", 2**63 - 1) == 403
    assert store(world, "ann", "reader", 4) == 0
    for other in (world, world.replayed(), restored(world)):
        assert offsets_of(other) == ({"reader": 4}, {"reader": "ann"})
    assert world.administer(DeleteUser("ann")) is None
    assert store(world, "mallory", "reader", 6) == 0
    assert offsets_of(world) == ({"reader": 6}, {"reader": "mallory"})


@pytest.mark.proves("R38")
def test_stored_offsets_of_one_user_are_bounded() -> None:
    world = World(limits=limited(stored_offsets_per_user_max=2))
    declared(world)
    world.admit("mallory")
    assert [store(world, "mallory", name) for name in ("a", "b", "c", "a")] == [0, 0, 406, 0]
    assert store(world, "guest", "mine") == 0


@pytest.mark.proves("R38")
def test_stored_offsets_of_one_user_are_bounded_over_all_streams() -> None:
    world = World(limits=limited(stored_offsets_per_user_total_max=3))
    for stream in ("s", "t"):
        declared(world, stream)
    for user in ("ann", "mallory"):
        world.admit(user)
    assert [store(world, "mallory", name) for name in "ab"] == [0, 0]
    assert [store(world, "mallory", name, stream="t") for name in "abc"] == [0, 406, 406]
    assert store(world, "mallory", "a", 2, stream="t") == store(world, "guest", "mine") == 0
    for other in (world, world.replayed(), restored(world)):
        counts = other.broker.state.offset_counts
        assert (counts.of("mallory"), counts.of("guest")) == (3, 1)
        assert counts.size_bytes == world.broker.state.offset_counts.size_bytes > 0
    # Names of deleted users go over to others; those of deleted streams make room.
    assert world.administer(DeleteUser("mallory")) is None
    assert store(world, "ann", "a") == 0
    assert [world.broker.state.offset_counts.of(user) for user in ("mallory", "ann")] == [2, 1]
    peer = world.peer()
    for stream in ("s", "t"):
        peer.call(QueueDelete(stream, False, False), expect=QueueDeleteOk)
    assert world.broker.state.offset_counts.size_bytes == 0
    assert [world.broker.state.offset_counts.of(user) for user in ("mallory", "ann", "guest")] == [0, 0, 0]


@pytest.mark.parametrize("name", ["", "x" * 256, "\ud800"])
def test_names_that_no_log_can_hold_are_refused(name: str) -> None:
    world = World()
    declared(world)
    assert store(world, "guest", name) == 406
    assert offsets_of(world) == ({}, {})


def test_an_offset_of_version_0_1_0_has_no_user_and_goes_to_the_next_user_that_stores_it() -> None:
    world = World()
    declared(world)
    world.admit("ann")
    old = decode_command(msgspec.msgpack.encode(["stream-offset", "/", "s", "reader", 3]))
    assert old == StoreOffset("/", "s", "reader", 3)
    world.broker.change(old)
    assert offsets_of(world) == ({"reader": 3}, {})
    assert store(world, "ann", "reader", 4) == 0
    assert store(world, "guest", "reader", 5) == 403
    kept = msgspec.msgpack.decode(msgspec.msgpack.encode(["stream", 1, 1, {"n": 2}, b""]), type=KeptStream)
    assert kept == KeptStream(1, 1, {"n": 2}, b"", {})
