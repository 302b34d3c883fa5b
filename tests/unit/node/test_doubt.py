"""With lazy syncs a primary whose machine was restarted is a learner until a root has admitted it (D1)."""

from __future__ import annotations

import pytest

from pandomq.journal.hard_state import COPY_OFFSETS
from pandomq.journal.limits import Fsync
from pandomq.journal.names import STATE
from pandomq.replica.roles.transitions import Role
from tests.unit.node.cluster_world import ClusterWorld, Loss


def restart(world: ClusterWorld, name: str, *, machine: bool) -> None:
    world.kill(name, Loss.ALL if machine else Loss.NONE)
    if machine:
        world.machines[name].boot_id += " and another"
    world.start(name)
    world.until(lambda: world.role(name) is not Role.RECOVERING)


@pytest.mark.proves("R21")
@pytest.mark.parametrize("fsync", [Fsync.INTERVAL, Fsync.NEVER])
def test_a_restarted_machine_comes_back_as_a_learner_and_is_admitted(fsync: Fsync) -> None:
    world = ClusterWorld(fsync=fsync)
    root = world.elect()
    world.found(False)
    backup = next(name for name in world.machines if name != root)
    restart(world, backup, machine=False)
    assert world.role(backup) is Role.BACKUP
    restart(world, backup, machine=True)
    assert world.role(backup) is Role.LEARNER
    world.until(lambda: world.role(backup) is Role.BACKUP)
    world.run(100)
    restart(world, backup, machine=False)
    assert world.role(backup) is Role.BACKUP, "it was admitted, and the machine has not been restarted since"


def test_two_of_three_machines_elect_no_root_after_both_were_restarted() -> None:
    world = ClusterWorld(fsync=Fsync.INTERVAL)
    root = world.elect()
    world.found(False)
    others = [name for name in world.machines if name != root]
    world.kill(root)
    for name in others:
        restart(world, name, machine=True)
    world.run(10_000)
    assert world.root is None
    assert {world.role(name) for name in others} == {Role.LEARNER}


def test_a_broker_alone_goes_on_with_what_it_has() -> None:
    world = ClusterWorld(count=1, fsync=Fsync.INTERVAL)
    world.elect()
    restart(world, "n1", machine=True)
    assert world.elect() == "n1"


def test_a_learner_is_noticed_at_once() -> None:
    world = ClusterWorld(fsync=Fsync.INTERVAL)
    root = world.elect()
    world.found(False)
    others = [name for name in world.machines if name != root]
    restart(world, others[0], machine=True)
    began_ms = world.now_ms
    world.until(lambda: world.role(others[0]) is Role.BACKUP)
    assert world.now_ms - began_ms < 100


@pytest.mark.proves("R21")
def test_a_store_whose_vote_record_cannot_be_read_is_set_aside_and_its_broker_learns() -> None:
    world = ClusterWorld()
    root = world.elect()
    world.found(False)
    world.run(1_000)
    backup = next(name for name in world.machines if name != root)
    world.kill(backup)
    disk = world.machines[backup].disk
    before = set(disk.sizes())
    for offset in COPY_OFFSETS:
        disk.flip_bit(STATE, (offset + 40) * 8)
    world.start(backup)
    world.until(lambda: world.role(backup) is Role.LEARNER)
    kept = {file for file in disk.sizes() if file.startswith("outlived-000001-")}
    assert kept == {f"outlived-000001-{file}" for file in before if file.startswith(("segment", "state"))}
    world.until(lambda: world.role(backup) is Role.BACKUP)
