"""A producer's name belongs to a user in a vhost: nobody publishes, is fenced or is forgotten for another user."""

from __future__ import annotations

from typing import Final

import msgspec
import pytest

from pandomq import methods
from pandomq.broker.log.commands import NoteSequences, SequenceNotes, decode_command
from pandomq.broker.log.revival import Revival
from pandomq.broker.log.snapshot import LENGTH, VERSION
from pandomq.broker.publishing.named_producers import NOBODY, PRODUCER_BYTES, RANGE_BYTES, Row
from tests.unit.broker.conversation import NOW_MS, Peer, World
from tests.unit.broker.test_deduplication import numbered, prepared, refusal, send
from tests.unit.broker.test_producers import held
from tests.unit.broker.test_snapshot import revived

OLD_NOTES: Final = ["sequences", NOW_MS, [["/", "p", 1, [1, 3], [], []]], []]
"""In the form of version 0.1.0: without a user."""


def confirming(world: World, user: str) -> Peer:
    peer = world.peer(user)
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    return peer


def users_of(world: World) -> list[tuple[str, str, int]]:
    return [(producer.user, producer.name, producer.last) for producer in world.broker.state.named_producers]


@pytest.mark.proves("R25", "R38")
def test_a_name_of_another_user_is_another_producer() -> None:
    world = prepared()
    world.admit("mallory", write="amq.fanout")
    owner, mallory = confirming(world, "guest"), confirming(world, "mallory")
    assert send(owner, 1) == [methods.BasicAck(1)]
    for number in (2, 3, 2**62):
        mallory.publish("amq.fanout", "", b"", numbered(number))
    assert mallory.heard() == [methods.BasicAck(1), methods.BasicAck(2), methods.BasicAck(3)]
    # Neither are the owner's numbers taken, nor is its connection fenced.
    assert send(owner, 2, 3, 3) == [methods.BasicAck(4, True)]
    others = (world.replayed(), revived(world))
    assert held(world) == [b"1", b"2", b"3"]
    assert sorted(users_of(world)) == [("guest", "p", 3), ("mallory", "p", 2**62)]
    for other in others:
        assert sorted(users_of(other)) == sorted(users_of(world))
        assert send(confirming(other, "guest"), 3, 4) == [methods.BasicAck(2, True)]
        assert held(other) == [b"1", b"2", b"3", b"4"]


@pytest.mark.proves("R38")
def test_a_user_with_too_many_names_forgets_its_own() -> None:
    world = prepared(producers_per_user_max=2)
    world.admit("mallory")
    owner, mallory = confirming(world, "guest"), confirming(world, "mallory")
    send(owner, 1)
    for name in "abcd":
        send(mallory, 1, name=name)
    assert [(user, name) for user, name, _ in users_of(world)] == [("guest", "p"), ("mallory", "c"), ("mallory", "d")]
    assert users_of(world.replayed()) == users_of(world)
    assert send(owner, 1, 2) == [methods.BasicAck(3, True)]
    assert held(world) == [b"1"] * 5 + [b"2"]


@pytest.mark.proves("R38")
def test_a_user_with_too_many_gaps_forgets_its_own_producers() -> None:
    bytes_max = 2 * PRODUCER_BYTES + 30 * RANGE_BYTES
    world = prepared(producers_per_user_bytes_max=bytes_max)
    world.admit("mallory")
    owner, mallory = confirming(world, "guest"), confirming(world, "mallory")
    send(owner, 1)
    for name in "abc":
        send(mallory, *range(0, 40, 2), name=name)
    assert [(user, name) for user, name, _ in users_of(world)] == [("guest", "p"), ("mallory", "c")]
    tables = [other.broker.state.named_producers for other in (world, world.replayed(), revived(world))]
    assert all(0 < table.bytes_of("mallory") <= bytes_max for table in tables)
    assert len({table.size_bytes for table in tables}) == 1


def test_the_only_producer_of_a_user_is_never_too_large() -> None:
    """Otherwise its numbers would be forgotten as soon as it has published."""
    world = prepared(producers_per_user_bytes_max=1)
    send(confirming(world, "guest"), 1, 2)
    assert users_of(world) == [("guest", "p", 2)]


@pytest.mark.proves("R25")
def test_sequences_in_a_log_of_version_0_1_0_hold_for_each_user_of_the_name() -> None:
    old = decode_command(msgspec.msgpack.encode(OLD_NOTES))
    assert old == NoteSequences(NOW_MS, [SequenceNotes("/", "p", 1, [1, 3], [], [])])
    world = prepared()
    world.admit("ann")
    world.broker.change(old)
    assert users_of(world) == [(NOBODY, "p", 3)]
    assert send(confirming(world, "ann"), 3, 4) == [methods.BasicAck(2, True)]
    assert send(confirming(world, "guest"), 2, 4) == [methods.BasicAck(2, True)]
    assert held(world) == [b"4", b"4"]
    assert users_of(world) == [(NOBODY, "p", 3), ("ann", "p", 4), ("guest", "p", 4)]
    other = World()
    other.broker.change(old)
    for index, entry in enumerate(world.entries, start=1):
        other.broker.apply(index, 1, entry)
    assert users_of(other) == users_of(world)
    assert other.broker.state.named_producers.rows() == world.broker.state.named_producers.rows()
    world.broker.change(decode_command(msgspec.msgpack.encode(["sequences", 8, [], [["/", "p"]]])))
    assert users_of(world) == [("ann", "p", 4), ("guest", "p", 4)]


def test_a_connection_that_was_fenced_before_users_were_known_stays_so() -> None:
    world = prepared()
    peer = confirming(world, "guest")
    peer.client.identity = 77
    for owner in (77, 2**60):
        world.broker.change(decode_command(msgspec.msgpack.encode(["sequences", 7, [["/", "p", owner, [], [], []]]])))
    assert "a newer connection publishes as producer 'p'" in refusal(send(peer, 1))
    assert users_of(world) == [(NOBODY, "p", -1)]


def test_a_snapshot_of_version_5_has_producers_without_users() -> None:
    row: Row = ("/", "p", 1, [], [1, 3], {}, -1, 7)
    parts = (["head", 5, 7, 1, True, False], ["sequences", [row]])
    stream = b"".join(LENGTH.pack(len(part)) + part for part in map(msgspec.msgpack.encode, parts))
    world = World()
    Revival(world.broker, lambda place: place).take(stream)
    assert users_of(world) == [(NOBODY, "p", 3)]


def test_a_snapshot_of_the_current_version_has_the_users() -> None:
    assert VERSION == 7
    world = prepared()
    peer = confirming(world, "guest")
    send(peer, 1)
    other = revived(world)
    assert users_of(other) == [("guest", "p", 1)]
