"""A request at which every root fails after it has changed its state."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq.broker.state import ReplicatedState
from pandomq.sim.injection import Injected
from tests.sim.scenarios.stage import ClosedByBrokerError, Stage

POISON = "poison"


@pytest.fixture(autouse=True)
def poison(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Raises an exception after a queue of this name was declared; returns the names of the requests at which brokers
    failed."""
    failed: list[str] = []
    apply = ReplicatedState.apply

    def fail(state: ReplicatedState, command: Any) -> None:
        apply(state, command)
        if getattr(command, "name", "") == POISON and hasattr(command, "arguments"):
            failed.append(POISON)
            raise Injected("at a poisonous request")

    monkeypatch.setattr(ReplicatedState, "apply", fail)
    return failed


@pytest.mark.proves("R38")
def test_a_request_that_always_fails_restarts_one_broker_and_not_one_root_after_the_other(poison: list[str]) -> None:
    stage = Stage(access="proxy")
    root = stage.elect()
    front = stage.others(root)[0]
    channel = stage.publisher(root)
    channel.publish_confirmed(b"safe", routing_key="q", delivery_mode=2)
    stage.level(*stage.machines)
    culprit = stage.client(front).channel()
    with pytest.raises(ClosedByBrokerError) as closed:
        culprit.rpc("queue.declare", queue=POISON, durable=True)
    assert closed.value.method.reply_code == 541
    stage.run(5_000)
    assert poison == [POISON]
    assert stage.client(stage.elect()).channel().drain("q") == [b"safe"]
    for name in stage.machines:
        assert POISON not in stage.broker(name).state.vhosts["/"].queues


@pytest.mark.proves("R38")
def test_clients_of_a_root_that_fails_are_closed_and_can_connect_again(poison: list[str]) -> None:
    stage = Stage(count=1, min_copies=1)
    root = stage.elect()
    channel = stage.publisher(root)
    channel.publish_confirmed(b"safe", routing_key="q", delivery_mode=2)
    culprit = stage.client(root).channel()
    with pytest.raises(ClosedByBrokerError) as closed:
        culprit.rpc("queue.declare", queue=POISON, durable=True)
    assert closed.value.method.reply_code == 541
    with pytest.raises(ClosedByBrokerError) as closed:
        channel.rpc("queue.declare", queue="q", durable=True)
    assert closed.value.method.reply_code == 320
    assert stage.client(stage.elect()).channel().drain("q") == [b"safe"]
