"""The faults that are over when the time of faults has ended."""

from __future__ import annotations

import pytest

from pandomq.journal.effects import Lane, Read, Request, Ticket
from pandomq.journal.names import STATE
from pandomq.sim.cluster.world import ClusterWorld
from pandomq.sim.disks.disk import DiskPace
from pandomq.sim.world import World


@pytest.mark.parametrize("nodes", [1, 3])
def test_no_disk_stalls_by_itself_after_the_faults(nodes: int) -> None:
    world = World(1) if nodes == 1 else ClusterWorld(1, nodes)
    for machine in world.machines:
        machine.disk._pace = DiskPace(stall_chance=1.0)
    world.faults.end()
    for machine in world.machines:
        now_ms = world.agenda.now_ms
        machine.disk.submit([Request(Ticket(10**6), Lane.READ, Read(STATE, 0, 1))], now_ms)
        assert machine.disk.idle_ms <= now_ms + 50
