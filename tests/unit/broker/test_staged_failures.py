"""A batch that cannot be published makes a broker restart its state a few times, and holds up nobody else after
that."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pandomq.broker import hooks
from pandomq.broker.containment import StateInDoubt
from pandomq.broker.publishing import publishing
from pandomq.broker.staging import expansion
from pandomq.broker.staging.frames import channel_of
from pandomq.errors import Fault
from pandomq.limits import STAGED_FAILURES_MAX
from pandomq.node.node import Node
from pandomq.node.settings import NodeSettings
from tests.unit.broker.conversation import World
from tests.unit.broker.staging_scene import COMMITTED, STAGED, Sink, frames, prepared
from tests.unit.broker.test_producers import held

POISON = frames("failing", key="poison")


class Bug(Exception):
    pass


@pytest.fixture
def bug(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Publishing to queue `poison` fails; `undo` mends it."""
    publish = publishing.publish

    def broken(broker: Any, channel: Any, message: Any, flags: int) -> None:
        if message.routing_key == "poison":
            raise Bug
        publish(broker, channel, message, flags)

    monkeypatch.setattr(hooks, "publish", broken)
    return monkeypatch


def restarted(world: World, *, same_process: bool = True) -> World:
    """The next broker, from the log: nothing of the batch that raised is in it."""
    other = world.replayed()
    other.entries, other.now_ms = list(world.entries), world.now_ms
    if same_process:
        other.broker.staging.expansion.inherit(world.broker.staging.expansion)
    return other


def refused(sink: Sink, batch: int, *chosen: tuple[int, str, int]) -> str:
    with pytest.raises(Fault) as fault:
        sink.commit(*chosen, batch=batch)
    assert fault.value.reply_code == 541
    sink.world.run([])
    return fault.value.reply_text


@pytest.mark.proves("R38", "S2")
def test_the_restarts_for_a_batch_are_bounded_and_nothing_of_it_is_lost_or_doubled(bug: pytest.MonkeyPatch) -> None:
    world, sink = prepared(("q", "poison"))
    sink.stage(frames("1"))
    sink.stage(frames("2") + POISON + frames("3"), 1)
    sink.stage(frames("4"), batch=1)
    sink.ask_commit((0, "a", 2))
    world._finish(world.broker.handle([], world.now_ms))
    notes = []
    for _ in range(STAGED_FAILURES_MAX):
        with pytest.raises(StateInDoubt) as doubt:
            world.run([])
        assert isinstance(doubt.value.__cause__, Bug)
        notes += doubt.value.__cause__.__notes__
        world = restarted(world)
    assert [note.partition(": ")[2] for note in notes[-2:]] == [
        "it tries again.",
        "it publishes nothing more of this query.",
    ]
    assert "query 'w' of user 'guest' in vhost '/', batch 0 (failure 3 of 3)" in notes[-1]
    world.run([])
    assert not world.broker.active
    assert held(world) == [b"1"]
    sink = Sink(world)
    for batch, chosen in ((0, (0, "a", 2)), (1, (0, "a", 1))):
        assert "failed 3 times to publish a batch of query 'w'" in refused(sink, batch, chosen)
    other = Sink(world, query="other")
    other.stage(frames("others"))
    other.commit((0, "a", 1))
    assert other.heard() == [STAGED, COMMITTED]
    assert held(world) == [b"others"]

    bug.undo()
    world = restarted(world, same_process=False)
    world.run([])
    assert held(world) == [b"2", b"3"]
    sink = Sink(world)
    sink.commit((0, "a", 2))
    sink.commit((0, "a", 1), batch=1)
    assert sink.heard() == [COMMITTED, COMMITTED]
    assert held(world) == [b"4"]


def test_a_client_that_repeats_the_commit_does_not_restart_the_state_for_ever(bug: pytest.MonkeyPatch) -> None:
    """The decision is in the batch that is never proposed: the log has none."""
    world, sink = prepared(("q", "poison"))
    sink.stage(POISON)
    for _ in range(STAGED_FAILURES_MAX):
        with pytest.raises(StateInDoubt):
            sink.commit((0, "a", 1))
        world = restarted(world)
        sink = Sink(world)
    refused(sink, 0, (0, "a", 1))
    bug.undo()
    sink = Sink(restarted(world, same_process=False))
    sink.commit((0, "a", 1))
    assert sink.heard() == [COMMITTED]
    assert held(sink.world, "poison") == [b"failing"]


def test_a_failure_before_anything_has_changed_restarts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        raise Bug

    world, sink = prepared()
    bystander = Sink(world, query="other")
    for one in (sink, bystander):
        one.stage(frames(one.query))
    with monkeypatch.context() as patch:
        patch.setattr(expansion, "channel_of", broken)
        sink.commit((0, "a", 1))
    staged, failed = sink.heard()
    assert staged == STAGED
    assert isinstance(failed, tuple)
    assert (failed[0], failed[1].reply_code) == ("failed", 541)
    caught = world.broker.containment.take()
    assert [(client, type(error)) for client, error in caught] == [(None, Bug)] * STAGED_FAILURES_MAX
    bystander.commit((0, "a", 1))
    assert held(world) == [b"other"]
    assert len(world.broker.state.staged.open) == 1


def test_one_failure_is_no_reason_to_give_up(monkeypatch: pytest.MonkeyPatch) -> None:
    world, sink = prepared()
    sink.stage(frames("1"))
    failures = [Bug()]

    def broken_once(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return channel_of(*arguments)

    monkeypatch.setattr(expansion, "channel_of", broken_once)
    sink.commit((0, "a", 1))
    assert sink.heard() == [STAGED, COMMITTED]
    assert held(world) == [b"1"]
    assert not world.broker.staging.expansion._failures


def test_the_next_node_of_a_process_inherits_the_batches_set_aside() -> None:
    former, node = (Node(NodeSettings(), Random(1), 1_000) for _ in range(2))
    former.broker.staging.expansion._failures["/", "guest", "w", 0] = STAGED_FAILURES_MAX
    node.views.inherit(former.views)
    with pytest.raises(Fault):
        node.broker.staging.expansion.check("/", "guest", "w")
    node.broker.staging.expansion.check("/", "guest", "v")
