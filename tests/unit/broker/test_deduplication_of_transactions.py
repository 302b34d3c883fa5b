"""Numbered publishes in transactions: the commit is what counts, and counts once."""

from __future__ import annotations

import pytest

from pandomq import methods
from tests.unit.broker.test_deduplication import FULL, confirming, prepared, refusal, send
from tests.unit.broker.test_producers import held


@pytest.mark.proves("R25")
def test_only_new_messages_of_a_repeated_transaction_are_enqueued() -> None:
    world = prepared()
    peer = world.peer()
    peer.send(methods.TxSelect()).heard()
    send(peer, 1, 2, 2)
    send(peer, 9)
    peer.call(methods.TxRollback(), expect=methods.TxRollbackOk)
    send(peer, 1, 2, 2)
    peer.call(methods.TxCommit(), expect=methods.TxCommitOk)
    for other in (world, world.replayed()):
        again = other.peer()
        again.send(methods.TxSelect()).heard()
        send(again, 1, 2, 3)
        again.call(methods.TxCommit(), expect=methods.TxCommitOk)
        assert held(other) == [b"1", b"2", b"3"]


def test_a_transaction_with_a_number_that_is_too_low_has_no_effect() -> None:
    world = prepared()
    peer = world.peer()
    peer.send(methods.TxSelect()).heard()
    send(peer, 1, 5)
    assert send(peer, 3) == []
    assert "above 5" in refusal(peer.send(methods.TxCommit()).heard())
    assert held(world) == []
    peer.reopen()
    send(peer, 3)
    assert "above 3" in refusal(send(peer, 1))
    assert held(world) == [b"3"]


def test_messages_that_a_transaction_could_not_place_may_come_again() -> None:
    world = prepared()
    world.peer().declare("full", durable=True, arguments=FULL)
    world.peer().publish("", "full", b"0")
    peer = world.peer()
    peer.send(methods.TxSelect()).heard()
    send(peer, 1, queue="full")
    send(peer, 2)
    assert "partial tx completion" in refusal(peer.send(methods.TxCommit()).heard())
    assert held(world, "full") == [b"0"]
    for other in (world, world.replayed()):
        again = confirming(other)
        assert send(again, 2) == [methods.BasicAck(1)]
        held(other, "full")
        assert send(again, 1, queue="full") == [methods.BasicAck(2)]
        assert (held(other), held(other, "full")) == ([b"2"], [b"1"])
