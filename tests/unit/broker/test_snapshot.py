"""A snapshot, taken at any moment, rebuilds what the log would."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq import methods
from pandomq.broker.revival import Revival
from pandomq.broker.snapshot import Snapshot, StoredAt
from pandomq.properties import Properties
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
    """A broker made from a snapshot of this one."""
    other = World(limits=world.limits, seed=2)
    revival = Revival(other.broker, no_pages)
    for piece in Snapshot(world.broker, exact=exact).pieces(PIECE_BYTES):
        revival.take(piece)
    other.now_ms = world.now_ms
    revival.finish(world.now_ms)
    other.run([])
    return other


def without_passing(world: World) -> World:
    """The same broker after a restart with its log alone."""
    other = world.replayed()
    other.now_ms = world.now_ms
    Revival(other.broker, no_pages).finish(world.now_ms)
    other.run([])
    return other


@settings(max_examples=100)
@given(st.lists(steps, min_size=20, max_size=100))
def test_a_snapshot_is_as_good_as_the_log(history: list[Any]) -> None:
    story = History()
    for step in history:
        story.play(step)
    world = story.world
    world.run([])
    # What clients hold unacked is in it, too.
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


def test_what_waits_for_its_commit_and_then_for_its_time() -> None:
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
