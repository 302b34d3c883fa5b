"""Brokers with new stores become a cluster; one whose store was lost, or belongs elsewhere, does not spoil it."""

from __future__ import annotations

import msgspec
import pytest

from pandomq.errors import ConnectionFault
from pandomq.journal.faults import ForeignFault
from pandomq.node.log.disk_log import BEGINNING_TICK_MS
from pandomq.replica.roles.transitions import Role
from tests.unit.node.cluster_world import ClusterWorld, Loss, member


def fresh(*names: str) -> ClusterWorld:
    world = ClusterWorld(founding=False)
    for name in names:
        world.start(name)
    return world


def refusal(world: ClusterWorld, name: str) -> str:
    fault = world.node(name).service_state.refusal()
    assert isinstance(fault, ConnectionFault)
    return fault.reply_text


def test_three_new_brokers_found_a_cluster_by_themselves() -> None:
    world = fresh("n1", "n2", "n3")
    root = world.elect()
    ids = {world.node(name).views.cluster_id for name in world.machines}
    assert len(ids) == 1
    world.until(lambda: {world.role(name) for name in world.machines} == {Role.ROOT, Role.BACKUP})
    world.client(root).close()
    for machine in world.machines.values():
        assert machine.restarts == [f"cluster {ids.copy().pop()} was created"]


@pytest.mark.proves("R21")
def test_a_refusal_names_the_missing_primaries_and_no_cluster_begins_without_them() -> None:
    world = fresh("n1")
    world.run(100)
    assert "is not yet part of a cluster: waiting for n2, n3" in refusal(world, "n1")
    world.start("n3")
    world.run(5_000)
    assert "waiting for n2" in refusal(world, "n1") and "waiting for n2" in refusal(world, "n3")
    assert world.root is None
    world.start("n2")
    world.elect()


def test_a_broker_that_waits_for_its_cluster_is_not_overdue_all_the_time() -> None:
    world = fresh("n1")
    world.run(100)
    node = world.node("n1")
    deadlines = set()
    for _ in range(1_000):
        world.run(1)
        deadlines.add(node.next_deadline_ms)
    # Beside its own ticks there are those of links, some four in a second.
    assert len(deadlines) <= 1_000 // BEGINNING_TICK_MS + 10


def test_power_may_go_at_any_moment_of_it() -> None:
    for moment_ms in range(20, 120, 7):
        world = fresh("n1", "n2", "n3")
        world.run(moment_ms)
        for name in world.machines:
            world.kill(name, Loss.ALL)
        for name in world.machines:
            world.start(name)
        world.elect()
        assert len({world.node(name).views.cluster_id for name in world.machines}) == 1
        assert not any(world.node(name).peers.replica.view().joining for name in world.machines)


def test_a_lost_store_makes_a_learner_who_is_admitted() -> None:
    world = fresh("n1", "n2", "n3")
    root = world.elect()
    lost = next(name for name in world.machines if name != root)
    world.kill(lost)
    world.machines[lost].wipe()
    world.start(lost)
    world.until(lambda: len(world.machines[lost].restarts) > 1)
    assert "joins cluster" in world.machines[lost].restarts[-1]
    world.until(lambda: world.role(lost) is Role.BACKUP)
    assert world.root == root


@pytest.mark.proves("R21")
def test_a_root_that_lost_its_store_does_not_elect_itself_with_another() -> None:
    world = fresh("n1", "n2", "n3")
    root = world.elect()
    others = [name for name in world.machines if name != root]
    world.kill(others[0])
    world.kill(root)
    world.machines[root].wipe()
    world.start(root)
    world.run(10_000)
    assert world.root is None and world.role(root) is Role.LEARNER
    world.start(others[0])
    assert world.elect() in others


def test_one_broker_founds_the_cluster_when_an_operator_asks_for_it() -> None:
    world = ClusterWorld(founding=False)
    world.start("n2", bootstrap=True)
    world.until(lambda: bool(world.machines["n2"].restarts))
    world.run(1_000)
    assert world.root is None, "one of three elects nobody"
    world.start("n1")
    assert world.elect() in ("n1", "n2")
    world.start("n3")
    world.until(lambda: world.role("n3") is Role.BACKUP)


def test_a_store_with_a_cluster_is_not_given_another() -> None:
    world = fresh("n1", "n2", "n3")
    world.elect()
    world.kill("n1")
    world.start("n1", bootstrap=True)
    with pytest.raises(ForeignFault, match=r"already belongs to cluster"):
        world.run(100)


def test_a_store_that_was_prepared_is_not_given_another() -> None:
    refusals = set()
    for moment_ms in range(1, 130, 4):
        world = fresh("n1", "n2", "n3")
        world.run(moment_ms)
        world.isolate("n2")
        world.run(50)
        world.kill("n2")
        world.start("n2", bootstrap=True)
        try:
            world.run(100)
        except ForeignFault as fault:
            refusals.add("prepared" if "was prepared for cluster" in str(fault) else "belongs")
        else:
            refusals.add("none")
    assert refusals == {"none", "prepared", "belongs"}


def test_a_broker_that_is_no_primary_does_not_found_a_cluster_of_primaries() -> None:
    world = ClusterWorld(founding=False)
    world.settings = msgspec.structs.replace(world.settings, primaries=(member("n1"),))
    world.start("n2", bootstrap=True)
    with pytest.raises(ForeignFault, match="is not one of them"):
        world.run(100)


def test_a_refusal_names_the_primaries_with_a_different_list() -> None:
    world = fresh("n1", "n2")
    world.settings = msgspec.structs.replace(world.settings, primaries=(member("n1"), member("n3")))
    world.start("n3")
    world.run(3_000)
    assert "n3 is configured with different primaries: n1, n3" in refusal(world, "n1")
    assert world.root is None
