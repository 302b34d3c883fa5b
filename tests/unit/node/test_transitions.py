from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import pandomq
from pandomq.ids import LogIndex, Term
from pandomq.node.broker_state import TRANSITIONS, BrokerLife, BrokerState
from pandomq.node.transitions import Transitions
from pandomq.replica.effects import Serve
from pandomq.replica.roles.transitions import Role

SERVE = Serve(Term(3), LogIndex(7), None)
ENTERED = re.compile(r"life\.enter\(")


def paths(*so_far: BrokerState) -> Iterator[tuple[BrokerState, ...]]:
    """All paths through the table that elect a broker at most twice."""
    yield so_far
    for new in TRANSITIONS[so_far[-1]]:
        if (*so_far, new).count(BrokerState.ELECTED) <= 2:
            yield from paths(*so_far, new)


def test_the_properties_of_a_state_follow_from_what_happened() -> None:
    for path in paths(BrokerState.OPENING):
        life = BrokerLife()
        for state in path[1:]:
            life.enter(state, elected=SERVE if state is BrokerState.ELECTED else None)
        assert life.is_over == (BrokerState.RESTARTING in path)
        assert life.store_is_read == bool({BrokerState.FOUNDING, BrokerState.SERVING} & set(path))
        assert life.took_over == bool({BrokerState.TAKING_OVER, BrokerState.SERVING} & set(path))
        assert life.proposes == (life.took_over and BrokerState.HANDED_OVER not in path and not life.is_over)
        ran = {BrokerState.FOLLOWING, BrokerState.SERVING} & set(path)
        assert life.runs_replica == (bool(ran) and not life.is_over)
        assert (life.elected is SERVE) == (path[-1] is BrokerState.ELECTED)


def test_a_state_that_may_not_follow_is_not_entered() -> None:
    life = BrokerLife()
    with pytest.raises(AssertionError, match="a broker that is opening cannot be taking over next"):
        life.enter(BrokerState.TAKING_OVER)


def test_one_module_enters_states() -> None:
    source = Path(pandomq.__file__).parent
    found = {path.relative_to(source).as_posix() for path in source.rglob("*.py") if ENTERED.search(path.read_text())}
    assert found == {"node/transitions.py"}


class Disconnecting:
    """Notes the reasons with which the clients were disconnected."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def close_all(self, reason: str, writes: object, now_ms: int) -> str:
        self.reasons.append(reason)
        return reason


def root(*states: BrokerState, successor: str | None) -> tuple[Transitions, BrokerLife, Disconnecting]:
    """A root that has come to the last of these states, and has then stepped down in favour of the successor."""
    life, disconnecting = BrokerLife(), Disconnecting()
    for state in (BrokerState.FOUNDING, BrokerState.FOLLOWING, BrokerState.ELECTED, *states):
        life.enter(state)
    knowledge = SimpleNamespace(successor=successor, step_down_reason="it stops")
    disk = SimpleNamespace(replication=SimpleNamespace(knowledge=knowledge, lease_ms=1_000))
    broker = SimpleNamespace(tracing=SimpleNamespace(writes=True))
    pending = SimpleNamespace(refuse=lambda fault: None)
    parts = cast(Any, (broker, disk, None, None, disconnecting, pending, None))
    return Transitions(life, *parts), life, disconnecting


def test_a_root_that_handed_over_disconnects_its_clients_once_and_waits() -> None:
    transitions, life, disconnecting = root(BrokerState.TAKING_OVER, BrokerState.SERVING, successor="b")
    transitions.role_changed(Role.BACKUP, 4, 0)
    assert life.state is BrokerState.HANDED_OVER and life.handover_wait is not None
    transitions.disconnect_clients([], 0)
    transitions.disconnect_clients([], 0)
    assert disconnecting.reasons == ["it stops"]
    transitions.waited_for_successor()
    assert life.restart_reason == "it stops" and life.handover_wait is None


def test_a_root_that_handed_over_before_it_served_has_no_clients() -> None:
    transitions, life, disconnecting = root(BrokerState.TAKING_OVER, successor="b")
    transitions.role_changed(Role.BACKUP, 4, 0)
    transitions.disconnect_clients([], 0)
    assert life.state is BrokerState.HANDED_OVER and not disconnecting.reasons


def test_the_first_reason_of_a_restart_counts() -> None:
    transitions, life, _ = root(successor=None)
    transitions.restart("one")
    transitions.restart("another")
    assert (life.state, life.restart_reason) == (BrokerState.RESTARTING, "one")


@pytest.mark.parametrize("role", [Role.BACKUP, Role.LEARNER])
def test_a_root_that_was_replaced_restarts(role: Role) -> None:
    transitions, life, _ = root(BrokerState.TAKING_OVER, BrokerState.SERVING, successor=None)
    transitions.role_changed(Role.ROOT, 4, 0)
    assert life.state is BrokerState.SERVING
    transitions.role_changed(role, 5, 0)
    assert life.is_over


def test_a_broker_that_is_replaced_before_it_took_over_follows() -> None:
    transitions, life, _ = root(successor=None)
    transitions.role_changed(Role.BACKUP, 5, 0)
    assert life.state is BrokerState.FOLLOWING and life.elected is None
    transitions.elected(SERVE)
    assert life.elected is SERVE
