"""When the faults of a world end, nothing disturbs its brokers any more. Checkers of punctuality rely on it."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from pandomq.journal.effects import FileName, Lane, MeasureSpace, Request, SyncFile, Ticket
from pandomq.replica.limits import HAND_OVER_MS
from pandomq.sim.checkers.root_time import RootTime
from pandomq.sim.disks.disk import DiskPace, SimDisk
from pandomq.sim.features.hours import HOUR_MS, HoursFeature
from pandomq.sim.world import World

SYNCS = 50


def test_a_disk_that_stalls_by_itself_no_longer_does_so_when_the_faults_have_ended() -> None:
    """Dead letters wait until the log has the expiration of their messages: a stall would make them late."""
    world = World(1)
    disk: SimDisk = world.machine.disk
    disk._pace = pace = DiskPace(stall_chance=1.0)
    world.faults.end()
    syncs = [Request(Ticket(number), Lane.LOG, SyncFile(FileName("log"))) for number in range(SYNCS)]
    disk.submit(syncs, world.agenda.now_ms)
    assert disk.idle_ms - world.agenda.now_ms <= SYNCS * pace.sync_us[1] // 1000


def test_a_broker_that_still_pauses_when_the_faults_end_is_late_through_no_fault_of_its_own() -> None:
    world = World(1)
    time = RootTime(world.ledger, world.scene)
    world.machine.start()
    world.agenda.run(1_000, lambda: world.machine.serving)
    world.machine.pause(1_500)
    paused_until_ms = world.agenda.now_ms + 1_500
    world.faults.end()
    time.begin_calm()
    assert time.calm_ms == paused_until_ms


def test_a_pause_that_is_interrupted_by_hours_ends_as_much_later() -> None:
    """All scheduled events were postponed, and so was the end of the pause; checkers have to know that."""
    world = World(1)
    time = RootTime(world.ledger, world.scene)
    world.machine.start()
    world.agenda.run(1_000, lambda: world.machine.serving)
    world.machine.pause(1_500)
    went_on: list[int] = []
    world.machine.when_running(lambda: went_on.append(world.agenda.now_ms))
    HoursFeature(world, Random(1))._leap(HOUR_MS)
    world.faults.end()
    time.begin_calm()
    world.agenda.run(world.agenda.now_ms + 2_000, lambda: bool(went_on))
    assert went_on == [time.calm_ms]


def test_a_disk_that_stalls_when_hours_pass_is_done_soon_after_the_faults_have_ended() -> None:
    """Its reports were scheduled calls, which were postponed, and so were its requests: it has something to hurry."""
    world = World(1)
    machine = world.machine
    machine.start()
    world.agenda.run(1_000, lambda: machine.serving)
    machine.disk.stall(world.agenda.now_ms, 1_500)
    reported = mock.Mock()
    with mock.patch.object(machine, "completed", reported):
        machine.submit([Request(Ticket(1_000_000), Lane.LOG, MeasureSpace())])
        HoursFeature(world, Random(1))._leap(HOUR_MS)
        assert machine.disk.idle_ms > world.agenda.now_ms + 1_000
        world.faults.end()
        world.agenda.run(world.agenda.now_ms + 50, lambda: reported.called)
    assert reported.called


@pytest.mark.parametrize(("handing_over", "calm_ms"), [(False, 1_000), (True, 1_000 + HAND_OVER_MS * 11 // 10)])
def test_a_hand_over_that_a_fault_has_asked_for_may_outlast_the_faults(handing_over: bool, calm_ms: int) -> None:
    """Publishers wait at the end of it, and events that are due meanwhile are late."""
    view = SimpleNamespace(handing_over=handing_over)
    machines = [
        SimpleNamespace(paused_until_ms=0, replica=SimpleNamespace(view=lambda: view)),
        SimpleNamespace(paused_until_ms=0, replica=None),
    ]
    scene: Any = SimpleNamespace(agenda=SimpleNamespace(now_ms=1_000), machines=machines)
    time = RootTime(World(1).ledger, scene)
    time.begin_calm()
    assert time.calm_ms == calm_ms
