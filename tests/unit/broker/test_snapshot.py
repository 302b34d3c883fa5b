"""A snapshot, taken at any moment, rebuilds what the log would."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq import methods
from pandomq.broker.log import snapshot
from pandomq.broker.log.commands import NoteHosts, PutPolicy
from pandomq.broker.log.revival import Revival
from pandomq.broker.log.snapshot import LENGTH, BrokerSnapshotHead, KeptTermStart, Part, Snapshot, StoredAt, read_parts
from pandomq.kernel.records import ENTRY_START
from pandomq.properties import Properties
from tests.support.examples import examples
from tests.unit.broker.conversation import Received, World
from tests.unit.broker.durable_view import durable_view
from tests.unit.broker.test_replay import History, steps

PIECE_BYTES = 64
"""Small, so that records lie across pieces."""
PERSISTENT = Properties(delivery_mode=2)


def redelivered(got: Received | None) -> bool:
    assert got is not None
    assert isinstance(got.method, methods.BasicGetOk)
    return got.method.redelivered


def no_pages(stored_at: StoredAt) -> object:
    raise AssertionError(stored_at)


def revived(world: World, *, exact: bool = False) -> World:
    """A broker made from a snapshot of this one, which begins to serve."""
    other, revival = _restored(world, exact=exact)
    revival.finish(world.now_ms)
    other.run([])
    return other


def restored(world: World) -> World:
    """A broker made from a snapshot of this one, which only follows."""
    return _restored(world, exact=False)[0]


def _restored(world: World, *, exact: bool) -> tuple[World, Revival]:
    other = World(limits=world.limits, seed=2)
    revival = Revival(other.broker, no_pages)
    for piece in Snapshot(world.broker, exact=exact).pieces(PIECE_BYTES):
        revival.take(piece)
    other.now_ms = world.now_ms
    return other, revival


def without_passing(world: World) -> World:
    """The same broker after a restart with its log alone."""
    other = world.replayed()
    other.now_ms = world.now_ms
    Revival(other.broker, no_pages).finish(world.now_ms)
    other.run([])
    return other


@settings(max_examples=examples(100))
@given(st.lists(steps, min_size=20, max_size=100))
def test_a_snapshot_is_as_good_as_the_log(history: list[Any]) -> None:
    story = History()
    for step in history:
        story.play(step)
    world = story.world
    world.run([])
    # The view includes the unacked messages of clients.
    assert durable_view(revived(world).broker) == durable_view(without_passing(world).broker)
    story.end()
    assert durable_view(revived(world).broker) == durable_view(without_passing(world).broker)


def test_unacked_messages_come_back_in_their_places() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q", durable=True)
    for number in range(5):
        peer.publish("", "q", bytes([number]), PERSISTENT)
    for _ in range(3):
        peer.get("q", no_ack=False)
    peer.send(methods.BasicAck(2))
    other = revived(world, exact=True).peer()
    got = [other.get("q") for _ in range(4)]
    assert [one.body for one in got if one is not None] == [b"\0", b"\2", b"\3", b"\4"]
    assert [redelivered(one) for one in got] == [True, True, False, False]
    assert other.get("q") is None


def test_only_persistent_messages_of_durable_queues_come_back() -> None:
    world = World()
    peer = world.peer()
    peer.declare("lasting", durable=True)
    peer.declare("passing")
    for queue in ("lasting", "passing"):
        peer.publish("", queue, b"transient", Properties())
        peer.publish("", queue, b"persistent", PERSISTENT)
    other = revived(world)
    assert list(other.broker.state.vhosts["/"].queues) == ["lasting"]
    got = other.peer().get("lasting")
    assert got is not None
    assert (got.body, redelivered(got)) == (b"persistent", True)
    assert other.broker.state.vhosts["/"].queues["lasting"].kernel.next_sequence == 3


def test_a_delayed_message_may_wait_for_its_commit_during_a_snapshot() -> None:
    world = World(late=True)
    peer = world.peer()
    later = methods.ExchangeDeclare("later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"})
    peer.send(methods.QueueDeclare("q", durable=True), later, methods.QueueBind("q", "later", ""), methods.TxSelect())
    delayed = Properties(delivery_mode=2, headers={"x-delay": 1000})
    peer.publish("later", "", b"m", delayed).send(methods.TxCommit())
    world.now_ms += 400
    other = revived(world)
    assert durable_view(other.broker) == durable_view(without_passing(world).broker)
    other.pass_time(599)
    assert other.peer().counts("q") == (0, 0)
    other.pass_time(1)
    assert other.peer().counts("q") == (1, 0)


def test_the_queue_of_a_message_that_waits_for_its_commit_may_be_deleted() -> None:
    world = World(late=True)
    peer = world.peer()
    peer.send(methods.QueueDeclare("q", durable=True), methods.QueueDeclare("kept", durable=True), methods.TxSelect())
    for queue in ("q", "kept"):
        peer.say_publish("", queue, b"m", PERSISTENT)
    peer.send(methods.TxCommit())
    other = world.connect()
    other.send(methods.ChannelOpen(), methods.QueueDelete("q"))
    assert durable_view(revived(world).broker) == durable_view(without_passing(world).broker)
    assert revived(world).peer().counts("kept") == (1, 0)


def test_a_message_that_waits_for_its_commit_expires_at_the_same_time_everywhere() -> None:
    world = World(late=True)
    peer = world.peer()
    peer.send(methods.QueueDeclare("q", durable=True, arguments={"x-message-ttl": 1000}), methods.TxSelect())
    peer.publish("", "q", b"m", PERSISTENT).send(methods.TxCommit())
    published_ms = world.now_ms
    world.now_ms += 400
    # Administrative changes meanwhile apply to later messages.
    world.administer(PutPolicy("/", "p", "", "queues", 0, b'{"message-ttl": 10}'))
    brokers = [restored(world), world.replayed()]
    world.commit()
    for one in (*brokers, world):
        (row,) = one.broker.state.vhosts["/"].queues["q"].kernel.snapshot()
        assert row[2] == published_ms + 1000


QUEUE_ID = 1


def logged_under_terms(*terms: int) -> World:
    """A broker that has applied a declare and one publish after the other, each entry under its term."""
    world = World()
    peer = world.peer()
    peer.declare("q", durable=True)
    for number in range(len(terms) - 1):
        peer.publish("", "q", bytes([number]), PERSISTENT)
    assert len(world.entries) == len(terms)
    other = World(seed=2)
    for index, (term, entry) in enumerate(zip(terms, world.entries, strict=True), start=1):
        other.broker.apply(index, term, entry)
    return other


def lost(world: World) -> set[tuple[int, int]]:
    """Messages, as sequence and term, that the log of this broker never had."""
    starts = world.broker.state.term_starts
    places = [(sequence, term) for sequence in range(1, 8) for term in range(1, 5)]
    return {(sequence, term) for sequence, term in places if starts.was_lost(QUEUE_ID, sequence, term)}


def followed_from(world: World, version: int | None = None) -> World:
    """A broker that follows the log from a snapshot of this one on; an older version lacks what it did not know."""
    other = World(seed=3)
    revival = Revival(other.broker, no_pages)
    for part in read_parts(bytearray(b"".join(Snapshot(world.broker, exact=False).pieces(PIECE_BYTES)))):
        kept: Part = part
        if version is not None and isinstance(part, BrokerSnapshotHead):
            kept = msgspec.structs.replace(part, version=version)
        if version is None or version >= 5 or not isinstance(part, KeptTermStart):
            encoded = msgspec.msgpack.encode(kept)
            revival.take(LENGTH.pack(len(encoded)) + encoded)
    return other


def test_a_snapshot_records_which_messages_of_earlier_roots_were_lost() -> None:
    world = logged_under_terms(1, 1, 3, 3, 4)
    # The roots of terms 1 and 2 may have given number 2 to a message, which the root of term 3 did not have.
    assert lost(world) == {(s, t) for s in range(1, 8) for t in range(1, 4) if s >= (2 if t < 3 else 4)}
    assert lost(followed_from(world)) == lost(world)


def test_entries_after_a_snapshot_do_not_restart_a_term() -> None:
    whole = logged_under_terms(1, 1, 3, 3, 3)
    halfway = followed_from(logged_under_terms(1, 1, 3))
    entries = World()
    peer = entries.peer()
    peer.declare("q", durable=True)
    for number in range(4):
        peer.publish("", "q", bytes([number]), PERSISTENT)
    for index, entry in enumerate(entries.entries[3:], start=4):
        halfway.broker.apply(index, 3, entry)
    assert lost(halfway) == lost(whole)
    assert (2, 2) in lost(halfway)


def test_a_snapshot_of_the_root_holds_where_its_own_term_began() -> None:
    world = logged_under_terms(1, 1, 3)
    world.broker.engine.term = 4
    Revival(world.broker, no_pages).finish(world.now_ms, takeover=True)
    world.run([])
    world.peer().publish("", "q", b"own", PERSISTENT)
    other = followed_from(world)
    assert other.broker.engine.term == 4
    # Number 4 is the root's own, so an earlier root's message of this number was lost; number 3 is that of term 3.
    assert {(sequence, term) for sequence, term in lost(other) if term == 3} == {(s, 3) for s in range(3, 8)}
    assert not any(term == 4 for _, term in lost(other))


def test_a_snapshot_of_version_4_knows_nothing_of_terms() -> None:
    world = logged_under_terms(1, 1, 3, 4)
    older = followed_from(world, version=4)
    assert lost(older) == set()
    assert durable_view(older.broker)["messages"] == durable_view(world.broker)["messages"]


def test_many_queues_have_their_starts_in_several_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "TERM_STARTS_PER_PART", 2)
    world = World()
    peer = world.peer()
    for number in range(5):
        peer.declare(f"q{number}", durable=True)
        peer.publish("", f"q{number}", b"", PERSISTENT)
    other = world.replayed()
    other.broker.apply(len(world.entries) + 1, 2, ENTRY_START.pack(1, world.now_ms, 0))
    assert lost(followed_from(other)) == lost(other) != set()
    ids = list(other.broker.state.logged)
    assert len(ids) == 5
    again = followed_from(other).broker.state.term_starts
    assert all(again.was_lost(queue_id, 2, 1) and not again.was_lost(queue_id, 1, 1) for queue_id in ids)


def test_hosts_are_kept() -> None:
    """A new root waits for these brokers, because they may have leases from an earlier one."""
    world = World()
    world.broker.log(NoteHosts(["n2", "n3"], []))
    world.broker.log(NoteHosts(["n4"], ["n2"]))
    world.run([])
    for other in (world.replayed(), revived(world)):
        assert other.broker.state.hosts == {"n3", "n4"}
