"""A page of messages is damaged on the disk of a backup. The backup has the whole log, so it may become root, and finds
the damage only when a client requests these messages."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from pandomq.journal.faults import CorruptFault, StoreFault
from pandomq.journal.limits import PART_BYTES_MAX
from pandomq.limits import KIB
from pandomq.replica.limits import AWAY_MS
from pandomq.sim.campaigns.reduction import Reduction
from pandomq.sim.cluster.faults import ClusterFaults
from pandomq.sim.machine import Machine
from tests.sim.scenarios.stage import Stage

BODIES = [b"%03d" % number + bytes(4 * KIB) for number in range(60)]
LOG_MESSAGES_MAX = 500
"""Enough for a snapshot, and for the deletion of the log before it."""


class StageWithFaults(Stage):
    """The faults of worlds check how a broker ended, and replace its disk."""

    def __init__(self, count: int = 3, part_bytes: int = PART_BYTES_MAX) -> None:
        super().__init__(count, start=False)
        for machine in self.machines.values():
            cluster = machine._settings.cluster
            # A lagging broker receives the log from the disk, or a snapshot, not from the root's memory.
            replica = msgspec.structs.replace(cluster.replica, tail_bytes=16 * KIB)
            cluster = msgspec.structs.replace(cluster, replica=replica)
            machine._settings = msgspec.structs.replace(machine._settings, paging_bytes=16 * KIB, cluster=cluster)
            machine._journal_settings = msgspec.structs.replace(machine._journal_settings, part_bytes=part_bytes)
        scene = SimpleNamespace(
            agenda=self.agenda,
            trace=self.trace,
            machines=list(self.machines.values()),
            on_tempted=None,
            reduction=Reduction(),
        )
        self.faults = ClusterFaults(cast(Any, scene), [], Random(1), self.network)
        self.found: list[StoreFault | None] = []
        self.start(*self.machines)

    def ended(self, machine: Machine, fault: StoreFault | None) -> None:
        self.found.append(fault)
        self.faults.ended(machine, fault)


def rot_pages(machine: Machine) -> str:
    """Damages all pages of a file while the machine is down, as the faults of worlds do, since the snapshot may need
    any of them."""
    file = next(file for file in sorted(machine.disk.sizes()) if file.startswith("pages-"))
    machine.wounded = True
    for at in range(KIB, machine.disk.sizes()[file], KIB):
        machine.disk.flip_bit(file, at * 8)
    return file


def test_a_page_that_rotted_is_found_long_after_its_broker_has_caught_up() -> None:
    stage = StageWithFaults()
    first = stage.elect()
    publisher = stage.publisher(first)
    for body in BODIES:
        publisher.publish_confirmed(body, routing_key="q", delivery_mode=2)
    stage.level(first, *stage.others(first))
    second, _ = stage.others(first)
    machine = stage.machines[second]
    stage.until(lambda: any(file.endswith(".snap") for file in machine.disk.sizes()), "snapshot")
    stage.kill(second)
    file = rot_pages(machine)
    stage.until(lambda: machine.up and not machine.wounded, "backup that has caught up")
    assert not stage.faults._may_lose(), "another machine must not lose data before this one has its page back"

    # The backup becomes root, and its clients request the messages.
    stage.run(2_000)
    stage.machines[first].ask(lambda peers: peers.hand_over(second, lambda done, text: stage.trace.say(first, text)))
    assert stage.elect(besides=first) == second
    stage.client(second).channel().rpc("basic.consume", queue="q", consumer_tag="c")
    stage.until(lambda: any(stage.found), "end of the root")
    (fault,) = filter(None, stage.found)
    assert isinstance(fault, CorruptFault) and fault.file == file

    # One broker was damaged: the others have every message, and so has this one once it has caught up again.
    stage.until(lambda: machine.up and not machine.wounded, "backup that has caught up")
    third = stage.elect(besides=second)
    assert sorted(stage.client(third).channel().drain("q")) == BODIES
    assert stage.faults._may_lose()


@pytest.mark.parametrize("part_bytes", [PART_BYTES_MAX, KIB])
@pytest.mark.parametrize("late_count", [1, 2])
def test_a_rotten_page_that_a_snapshot_for_late_brokers_needs_ends_the_root(late_count: int, part_bytes: int) -> None:
    """Brokers that were away for longer than the root keeps its log need a snapshot, with all pages. If the root sent
    them a damaged page, they would reject the snapshot, and request it again, for ever."""
    stage = StageWithFaults(2 * late_count + 1, part_bytes)
    first = stage.elect()
    publisher = stage.publisher(first)
    for body in BODIES:
        publisher.publish_confirmed(body, routing_key="q", delivery_mode=2)
    stage.level(first, *stage.others(first))
    rotten, *rest = stage.others(first)
    late = rest[:late_count]
    machine = stage.machines[rotten]
    stage.until(lambda: any(file.endswith(".snap") for file in machine.disk.sizes()), "snapshot")
    stage.kill(rotten)
    file = rot_pages(machine)
    stage.until(lambda: machine.up and not machine.wounded, "backup that has caught up")
    stage.run(2_000)
    stage.machines[first].ask(lambda peers: peers.hand_over(rotten, lambda done, text: stage.trace.say(first, text)))
    assert stage.elect(besides=first) == rotten

    # No client requests the messages on the damaged page until the late brokers reconnect.
    stage.isolate(*late)
    stage.run(AWAY_MS + 1_000)
    publisher = stage.publisher(rotten, "short", **{"x-max-length": 1})
    ends = [stage.machines[name].journal.last_index for name in late]
    for _ in range(LOG_MESSAGES_MAX):
        publisher.publish_confirmed(bytes(4 * KIB), routing_key="short", delivery_mode=2)
        if machine.journal.first_index > max(ends) + 1:
            break
    assert machine.journal.first_index > max(ends) + 1, "the log that late brokers lack is reclaimed"
    stage.heal()
    stage.until(lambda: any(stage.found), "end of the root", limit_ms=20_000)
    (fault,) = filter(None, stage.found)
    assert isinstance(fault, CorruptFault) and fault.file == file
    root = stage.elect(besides=rotten)
    stage.level(root, *stage.others(root))
    assert sorted(stage.client(root).channel().drain("q")) == BODIES
