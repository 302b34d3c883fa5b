"""Forced promotions in simulated worlds of several brokers: the operators' rules, and the promises afterwards."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pandomq.ids import NodeName
from pandomq.node.broker_state import BrokerLife, BrokerState
from pandomq.replica.members.membership import Member, Membership
from pandomq.replica.settings import ReplicaSettings
from pandomq.sim.checkers import brokers_equal
from pandomq.sim.cluster.faults import HELD_DOWN_MS, ClusterFaults
from pandomq.sim.cluster.world import ClusterWorld
from pandomq.sim.logs.faults import LogFaults
from pandomq.sim.logs.world import LogWorld
from pandomq.sim.machine import Machine
from pandomq.sim.replicas.faults import PATIENCE_MS


def promoted(voters: str) -> Machine:
    membership = Membership(tuple(Member(NodeName(name)) for name in voters))
    replica = SimpleNamespace(membership=membership, view=lambda: SimpleNamespace(epoch_id="new"))
    journal = SimpleNamespace(first_index=2, last_index=1)
    return cast(Machine, SimpleNamespace(replica=replica, journal=journal))


def test_one_primary_that_is_left_confirms_what_it_alone_has_in_memory() -> None:
    world = ClusterWorld(1, 3)
    world._replica_settings = ReplicaSettings(min_copies=2)
    world._confirmed_kept.in_memories = True
    for voters, in_two_memories in (("ab", True), ("a", False)):
        world._promoted(promoted(voters))
        assert world._confirmed_kept.in_memories is in_two_memories, voters


def test_brokers_named_as_dead_stay_down_while_the_promoted_one_is_up() -> None:
    """They would elect a root among themselves, which the manual tells a person to prevent."""
    world = ClusterWorld(1, 3)
    faults, (one, other, third) = world.faults, world.machines
    assert isinstance(faults, ClusterFaults)
    faults._promote_one(one, [other.name])
    faults.start_later(other)
    faults.start_later(third)
    world.agenda.run(2 * HELD_DOWN_MS, lambda: other.up)
    assert third.up and not other.up
    one.start()
    assert world.agenda.run(4 * HELD_DOWN_MS, lambda: other.up)


def test_a_broker_that_is_about_to_restart_is_not_level_with_the_root() -> None:
    """It has handed over, and its broker does not follow its log any more."""

    def machine(*states: BrokerState) -> Any:
        life = BrokerLife()
        for state in states:
            life.enter(state)
        view = SimpleNamespace(joining=False, repairing=False)
        replica = SimpleNamespace(commit_index=5, view=lambda: view)
        peers = SimpleNamespace(life=life)
        node = SimpleNamespace(peers=peers, _disk=SimpleNamespace(applier=SimpleNamespace(behind=False)))
        return SimpleNamespace(replica=replica, node=node, secondary=False)

    serving = (
        BrokerState.FOUNDING,
        BrokerState.FOLLOWING,
        BrokerState.ELECTED,
        BrokerState.TAKING_OVER,
        BrokerState.SERVING,
    )
    assert brokers_equal._has_all(machine(*serving), 5)
    assert not brokers_equal._has_all(machine(*serving, BrokerState.HANDED_OVER), 5)
    assert not brokers_equal._has_all(machine(*serving, BrokerState.HANDED_OVER, BrokerState.RESTARTING), 5)


@pytest.mark.parametrize("answer", [None, False, True])
def test_an_operator_of_logs_repeats_a_promotion_only_without_an_answer(
    answer: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash in the middle of a promotion can leave no broker that may be elected."""
    world = LogWorld(1, 2)
    faults, (one, other) = world.faults, world.machines
    for machine in world.machines:
        machine.start()
    world.agenda.run(100)
    asked: list[str] = []
    monkeypatch.setattr(LogFaults, "_root", None)
    monkeypatch.setattr(faults, "_ask_promotion", lambda machine, dead, epoch_id: asked.append(epoch_id))
    faults._promote_one(one, [other.name])
    if answer is not None:
        faults._promotion_ended(asked[0], done=answer)
    faults.end()
    world.agenda.run(world.agenda.now_ms + 4 * PATIENCE_MS)
    assert len(asked) == (3 if answer is None else 1)
