"""Clocks that differ, links that carry one way only, a disk that stalls, and messages that have a time to live."""

from __future__ import annotations

import pytest

from tests.sim.scenarios.stage import Stage

HOUR_MS = 3_600_000


@pytest.mark.proves("R10", "R34")
@pytest.mark.parametrize("shift_ms", [HOUR_MS, -HOUR_MS])
def test_one_way_links_a_disk_stall_skewed_clocks_and_times_to_live(shift_ms: int) -> None:
    stage = Stage(lease_ms=300, drifts_permille=(45, -45, 20), start=False)
    for machine in stage.machines.values():
        machine.wall.shift_ms = 0 if machine.name == "n1" else shift_ms
    stage.start(*stage.machines)
    old = stage.elect()
    channel = stage.publisher(old, "patient", **{"x-message-ttl": 60_000})
    channel.rpc("queue.declare", queue="hasty", durable=True, arguments={"x-message-ttl": 3_000})
    for number in range(3):
        channel.publish_confirmed(b"%d" % number, routing_key="patient", delivery_mode=2)
        channel.publish_confirmed(b"%d" % number, routing_key="hasty", delivery_mode=2)
    begun_ms = stage.agenda.now_ms
    other, third = stage.others(old)

    # What the root says does not arrive at one of the others, and its disk does not answer: it has to go.
    stage.cut_one_way(old, other)
    stage.machines[old].disk.stall(stage.agenda.now_ms, 2_000)
    channel.publish(b"for a disk that does not answer", routing_key="nobody", delivery_mode=2)
    channel.publish(b"in doubt", routing_key="patient", delivery_mode=2)
    new = stage.elect(besides=old)
    took_ms = stage.agenda.now_ms - begun_ms
    assert took_ms < 2_500

    # By whichever clock: nothing has expired before its time, and nothing lives for much longer.
    channel = stage.client(new).channel()
    assert channel.counts("patient")[0] in (3, 4)
    assert channel.counts("hasty")[0] == 3
    stage.run(4_000)
    assert channel.counts("patient")[0] in (3, 4)
    assert channel.counts("hasty")[0] == 0
    stage.heal()
    stage.level(new, old, third)


def test_a_root_that_has_nothing_to_write_says_what_time_it_is() -> None:
    stage = Stage(lease_ms=1_000)
    root = stage.elect()
    stage.run(1_000)
    last_index = stage.machines[root].journal.last_index
    stage.run(125_000)
    assert stage.machines[root].journal.last_index == last_index + 2
    known_ms = [stage.node(name).last_ms for name in stage.others(root)]
    assert all(0 <= stage.machines[root].broker_ms - at_ms < 60_000 for at_ms in known_ms)


def test_who_has_just_started_hears_the_time_from_others() -> None:
    """It is elected for its log, has followed nobody in this life, and its wall clock is an hour ahead."""
    stage = Stage(lease_ms=300)
    old = stage.elect()
    behind, coming = stage.others(old)
    channel = stage.publisher(old, "patient", **{"x-message-ttl": 60_000})
    stage.level(old, behind, coming)
    stage.isolate(behind)
    channel.publish_confirmed(b"", routing_key="patient", delivery_mode=2)
    begun_ms, cluster_ms = stage.agenda.now_ms, stage.machines[old].broker_ms
    stage.kill(old)
    stage.kill(coming)
    stage.machines[coming].wall.shift_ms += HOUR_MS
    stage.heal()
    stage.start(coming)
    assert stage.elect() == coming
    assert stage.machines[coming].broker_ms - cluster_ms <= stage.agenda.now_ms - begun_ms + 100
    assert stage.client(coming).channel().counts("patient")[0] == 1


@pytest.mark.proves("R34")
def test_who_was_root_knows_the_time_when_it_begins_again() -> None:
    """Nobody else does: the first root is gone for good, and the third broker has just started."""
    stage = Stage(lease_ms=300)
    first = stage.elect()
    channel = stage.publisher(first, "patient", **{"x-message-ttl": 60_000})
    channel.publish_confirmed(b"", routing_key="patient", delivery_mode=2)
    for name in stage.others(first):
        stage.kill(name)
        stage.machines[name].wall.shift_ms += HOUR_MS
        stage.start(name)
        stage.run(2_000)
    begun_ms, cluster_ms = stage.agenda.now_ms, stage.machines[first].broker_ms
    stage.kill(first)
    second = stage.elect()
    (third,) = (name for name in stage.others(first) if name != second)
    stage.kill(third)
    stage.run(2_000)
    assert not stage.machines[second].serving
    stage.start(third)
    root = stage.elect()
    assert stage.machines[root].broker_ms - cluster_ms <= (stage.agenda.now_ms - begun_ms) * 11 // 10 + 100
    assert stage.client(root).channel().counts("patient")[0] == 1
