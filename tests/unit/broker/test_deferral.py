"""Removed messages enter the log with the next entry that somebody waits for, or a little later."""

from __future__ import annotations

import pytest

from pandomq import methods
from pandomq.kernel import NEVER_MS
from pandomq.limits import REMOVALS_DEFERRED_MAX, REMOVALS_DEFERRED_MS_MAX
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World
from tests.unit.broker.durable_view import durable_view

PERSISTENT = Properties(delivery_mode=2)


def taken(count: int = 2) -> Peer:
    """A client that has this many unacked messages of a durable queue."""
    peer = World().peer()
    peer.declare("q", durable=True)
    for number in range(count):
        peer.say_publish("", "q", b"%d" % number, PERSISTENT)
    peer.flush()
    for _ in range(count):
        peer.say(methods.BasicGet("q", False))
    peer.flush().hear()
    return peer


def test_an_ack_alone_is_no_entry_and_the_next_publish_seals_it() -> None:
    peer = taken()
    world, before = peer.world, len(peer.world.entries)
    peer.send(methods.BasicAck(1))
    assert len(world.entries) == before
    assert world.broker.deferral.pending and not world.broker.at_rest and not world.broker.active
    peer.publish("", "q", b"next", PERSISTENT)
    assert len(world.entries) == before + 1
    assert world.broker.at_rest and world.broker.deferral.due_ms == NEVER_MS
    reader = world.replayed().peer()
    assert [got.body for got in (reader.get("q") for _ in range(2)) if got is not None] == [b"1", b"next"]


@pytest.mark.parametrize("elapsed_ms", [REMOVALS_DEFERRED_MS_MAX - 1, REMOVALS_DEFERRED_MS_MAX])
def test_without_another_entry_an_ack_is_logged_after_a_bounded_time(elapsed_ms: int) -> None:
    peer = taken()
    world, before = peer.world, len(peer.world.entries)
    peer.send(methods.BasicAck(1))
    world.pass_time(elapsed_ms)
    assert (len(world.entries) > before) is (elapsed_ms == REMOVALS_DEFERRED_MS_MAX)


def test_later_acks_do_not_extend_the_wait_of_the_first() -> None:
    peer = taken(8)
    world, before = peer.world, len(peer.world.entries)
    for tag in range(1, 8):
        peer.send(methods.BasicAck(tag))
        world.pass_time(REMOVALS_DEFERRED_MS_MAX // 4)
    assert len(world.entries) == before + 1


def test_many_acks_with_gaps_are_logged_at_once() -> None:
    count = 2 * REMOVALS_DEFERRED_MAX + 10
    peer = taken(count)
    before = len(peer.world.entries)
    for tag in range(1, count, 2):
        peer.say(methods.BasicAck(tag))
    peer.flush()
    assert len(peer.world.entries) == before + 1


@pytest.mark.parametrize(
    "request_",
    [methods.QueueDeclare("other", False, True), methods.QueuePurge("q"), methods.TxSelect()],
    ids=["a command", "a purge", "no change"],
)
def test_a_reply_that_waits_for_the_log_waits_for_earlier_acks(request_: methods.Method) -> None:
    peer = taken()
    world = peer.world
    world.late = True
    peer.send(methods.BasicAck(1))
    before = len(world.entries)
    peer.send(request_)
    # Only a reply that reports nothing of the log may come before the ack is logged.
    waits = not isinstance(request_, methods.TxSelect)
    assert bool(peer.hear()) is not waits
    assert (len(world.entries) > before) is waits
    world.commit()
    assert bool(peer.hear()) is waits


def test_a_confirm_waits_for_an_earlier_ack_of_its_channel() -> None:
    peer = taken()
    peer.call(methods.ConfirmSelect(), expect=methods.ConfirmSelectOk)
    world = peer.world
    world.late, before = True, len(world.entries)
    # Nobody else would wait for the entry of this message.
    peer.send(methods.BasicAck(1)).publish("", "transient queue that does not exist")
    assert len(world.entries) == before + 1
    assert peer.heard() == []
    world.commit()
    assert peer.heard() == [methods.BasicAck(1, False)]


def test_a_state_that_is_needed_at_rest_comes_soon_and_stays_for_a_while() -> None:
    peer = taken()
    world = peer.world
    peer.send(methods.BasicAck(1))
    assert not world.broker.at_rest
    world.broker.deferral.pause()
    assert world.broker.next_deadline_ms <= world.now_ms
    world.pass_time(1)
    assert world.broker.at_rest
    peer.send(methods.BasicAck(2))
    assert world.broker.at_rest
    assert durable_view(world.replayed().broker)["messages"] == {1: []}


def test_a_clock_that_is_set_back_does_not_extend_the_wait() -> None:
    peer = taken()
    world, before = peer.world, len(peer.world.entries)
    peer.send(methods.BasicAck(1))
    world.now_ms -= 60_000
    peer.send(methods.BasicAck(2))
    assert len(world.entries) == before + 1


def test_waiting_removals_can_be_logged_between_batches() -> None:
    peer = taken()
    world = peer.world
    peer.send(methods.BasicAck(2, True))
    assert world.broker.deferral.end() is not None
    assert world.broker.deferral.end() is None
