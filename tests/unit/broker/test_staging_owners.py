"""A query is a name of a user: no other user can take the name, or do anything to what is staged under it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from pandomq.broker.log.commands import DecideBatch, DeleteUser, FinishBatch, decode_command, encode_command
from pandomq.errors import Fault
from tests.unit.broker.conversation import World
from tests.unit.broker.staging_scene import COMMITTED, STAGED, Sink, frames, prepared
from tests.unit.broker.test_producers import held
from tests.unit.broker.test_snapshot import restored, revived


def apart(world: World, user: str, query: str = "w") -> None:
    """Whatever this user asks under the name of the query, nothing staged by others changes."""
    other = Sink(world, user=user, query=query)
    staged = dict(other.vhost.inner_queues)
    assert other.last_batch() == -1
    for ask in (lambda: other.stage(frames("no")), lambda: other.commit((0, "a", 1))):
        with pytest.raises(Fault) as fault:
            ask()
        assert fault.value.reply_code == 403, "the attempt is another user's"
        world.run([])
    other.drop((0, "a"))
    other.commit(batch=2**53)
    other.stage(frames("late"), attempt="b")
    assert other.heard() == ["dropped", COMMITTED, ("staged", True)]
    assert other.vhost.inner_queues == staged


@pytest.mark.proves("S2", "R38")
def test_the_name_of_a_query_cannot_be_taken_by_another_user() -> None:
    world, sink = prepared()
    world.admit("mallory")
    Sink(world, user="mallory").commit(batch=2**53)
    sink.stage(frames("1"))
    sink.commit((0, "a", 1))
    assert sink.heard() == [STAGED, COMMITTED]
    assert held(world) == [b"1"]
    for other in (world, world.replayed(), restored(world)):
        decisions = other.broker.state.staged
        assert [decisions.last_batch("/", user, "w") for user in ("guest", "mallory")] == [0, 2**53]
        assert [decisions.count_of(user) for user in ("guest", "mallory")] == [1, 1]


@pytest.mark.proves("S2", "R38")
def test_another_user_changes_nothing_of_a_query() -> None:
    world, sink = prepared()
    world.admit("mallory")
    sink.stage(frames("1"))
    apart(world, "mallory")
    sink.commit((0, "a", 1))
    sink.stage(frames("2"), batch=1)
    sink.commit((0, "a", 1), batch=1)
    assert sink.heard() == [STAGED, COMMITTED] * 2
    assert held(world) == [b"1", b"2"]
    for other in (world.replayed(), restored(world)):
        assert Sink(other).last_batch() == 1


def test_each_user_publishes_batches_of_its_own_under_one_name() -> None:
    world, sink = prepared()
    world.admit("ann")
    ann = Sink(world, user="ann")
    for one in (sink, ann):
        one.stage(frames(f"{one.user} 1"), attempt=one.user)
        one.stage(frames(f"{one.user} 2"), batch=1, attempt=one.user)
    for batch in range(2):
        sink.ask_commit((0, "guest", 1), batch=batch)
        ann.ask_commit((0, "ann", 1), batch=batch)
    # Both have open batches of the same numbers: the next root publishes them, too.
    assert len(restored(world).broker.state.staged.open) == 4
    opened = revived(world)
    world.run([])
    for there in (world, opened):
        assert held(there) == [b"guest 1", b"ann 1", b"guest 2", b"ann 2"]
        assert not there.broker.state.staged.open
        assert not there.broker.state.attempts.count
        assert [Sink(there, user=user).last_batch() for user in ("guest", "ann")] == [1, 1]


def test_no_other_user_stages_under_the_name_of_an_attempt_that_is_being_published() -> None:
    world, sink = prepared()
    world.admit("mallory")
    sink.stage(frames("1"))
    sink.stage(frames("2"), partition=1)
    sink.ask_commit((0, "a", 1), (1, "a", 1))
    world._finish(world.broker.handle([], world.now_ms))
    assert len(sink.vhost.inner_queues) == 1
    with pytest.raises(Fault) as fault:
        Sink(world, user="mallory").stage(frames("no"))
    assert fault.value.reply_code == 403
    assert held(revived(world)) == [b"1", b"2"]


def test_a_user_without_a_right_to_write_takes_no_name() -> None:
    world, sink = prepared()
    for user, write in (("nobody", ""), ("nothing", "^$")):
        world.admit(user, write=write)
        other = Sink(world, user=user, query=user)
        for ask in (lambda: other.stage(b""), lambda: other.commit(batch=1)):  # noqa: B023 called at once
            with pytest.raises(Fault) as fault:
                ask()
            assert fault.value.reply_code == 403
    world.run([])
    assert sink.vhost.inner_queues == {}
    assert not len(world.broker.state.staged)


def test_the_query_of_a_deleted_user_does_not_pass_to_another_one() -> None:
    world, _ = prepared()
    world.admit("ann")
    world.admit("bob")
    ann, bob = Sink(world, user="ann"), Sink(world, user="bob")
    ann.stage(frames("1"))
    ann.commit((0, "a", 1))
    assert world.administer(DeleteUser("ann")) is None
    assert bob.last_batch() == -1
    world.admit("ann")
    assert Sink(world, user="ann").last_batch() == 0


# Logs of earlier versions.


def applied(world: World, *commands: list[Any]) -> None:
    """These commands, in the form in which earlier versions wrote them."""
    for command in commands:
        world.broker.change(decode_command(msgspec.msgpack.encode(command)))


@pytest.mark.parametrize("later", ["same", "restored"])
def test_a_decision_of_version_0_1_0_has_no_user_and_belongs_to_the_user_who_continues_it(later: str) -> None:
    world, sink = prepared()
    world.admit("ann")
    applied(world, ["staged-batch", "/", "w", 4, [], world.now_ms, []])
    assert sink.last_batch() == 4
    if later == "restored":
        world = revived(world)
    ann = Sink(world, user="ann")
    ann.stage(frames("again"), batch=4)
    ann.stage(frames("1"), batch=5)
    ann.commit((0, "a", 1), batch=5)
    assert ann.heard() == [("staged", True), STAGED, COMMITTED]
    assert held(world) == [b"1"]
    # The query is the one of ann, who has continued it.
    assert [Sink(world, user=user).last_batch() for user in ("ann", "guest")] == [5, -1]


def test_commands_of_earlier_logs_finish_and_forget_batches_by_name() -> None:
    world, _ = prepared()
    now_ms = world.now_ms
    applied(
        world,
        ["staged-batch", "/", "v", 1, [], now_ms, []],
        ["staged-batch", "/", "u", 1, [], now_ms, [], "ann"],
        ["staged-batch", "/", "w", 4, ["x"], now_ms, []],
        ["staged-batch", "/", "x", 5, ["y"], now_ms, [["/", "v"], ["/", "u"]], "ann"],
    )
    decisions = world.broker.state.staged
    assert [decided.query for decided in decisions.oldest_first()] == ["w", "x"]
    assert list(decisions.open) == [("/", "", "w", 4), ("/", "ann", "x", 5)]
    assert decisions.chose("/", "x")
    applied(world, ["staged-batch-done", "/", "w", 4], ["staged-batch-done", "/", "x", 5])
    assert not decisions.open
    assert not decisions.chose("/", "x")
    assert [decided.attempts for decided in decisions.oldest_first()] == [[], []]


def test_a_broker_of_version_0_1_0_reads_a_decision_with_a_user() -> None:
    class OldDecideBatch(msgspec.Struct, frozen=True, array_like=True, tag_field="command", tag="staged-batch"):
        vhost: str
        query: str
        batch: int
        attempts: list[str]
        now_ms: int
        forgotten: list[tuple[str, str]] = []

    class OldFinishBatch(msgspec.Struct, frozen=True, array_like=True, tag_field="command", tag="staged-batch-done"):
        vhost: str
        query: str
        batch: int

    new = encode_command(DecideBatch("/", "w", 4, ["x"], 1, [], "ann", [("/", "ann", "v")]))
    assert msgspec.msgpack.decode(new, type=OldDecideBatch) == OldDecideBatch("/", "w", 4, ["x"], 1)
    done = encode_command(FinishBatch("/", "w", 4, "ann"))
    assert msgspec.msgpack.decode(done, type=OldFinishBatch) == OldFinishBatch("/", "w", 4)
