"""Clocks that differ, links that work in one direction only, a disk that stalls, and messages with a time to live."""

from __future__ import annotations

import pytest

from tests.sim.scenarios.stage import Loss, Stage

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


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

    # The root's messages do not arrive at one of the others, and its disk does not answer: it has to step down.
    stage.cut_one_way(old, other)
    stage.machines[old].disk.stall(stage.agenda.now_ms, 2_000)
    channel.publish(b"for a disk that does not answer", routing_key="nobody", delivery_mode=2)
    channel.publish(b"in doubt", routing_key="patient", delivery_mode=2)
    new = stage.elect(besides=old)
    took_ms = stage.agenda.now_ms - begun_ms
    assert took_ms < 2_500

    # By any of the clocks, no message has expired before its time, and none lives for much longer.
    channel = stage.client(new).channel()
    assert channel.counts("patient")[0] in (3, 4)
    assert channel.counts("hasty")[0] == 3
    stage.run(4_000)
    assert channel.counts("patient")[0] in (3, 4)
    assert channel.counts("hasty")[0] == 0
    stage.heal()
    stage.level(new, old, third)


def test_an_idle_root_writes_the_time_to_the_log() -> None:
    stage = Stage(lease_ms=1_000)
    root = stage.elect()
    stage.run(1_000)
    last_index = stage.machines[root].journal.last_index
    stage.run(125_000)
    assert stage.machines[root].journal.last_index == last_index + 2
    known_ms = [stage.node(name).last_ms for name in stage.others(root)]
    assert all(0 <= stage.machines[root].broker_ms - at_ms < 60_000 for at_ms in known_ms)


def test_a_newly_started_broker_gets_the_time_from_others() -> None:
    """It is elected because of its log, has followed no root in this life, and its wall clock is an hour ahead."""
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
def test_a_former_root_knows_the_time_after_a_restart() -> None:
    """No other broker knows it: the first root is gone for good, and the third broker has just started."""
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


@pytest.mark.proves("R34")
def test_a_broker_that_was_away_does_not_take_the_time_back() -> None:
    """The root has written nothing for most of a minute when the other broker reconnects, and is killed once it has
    told that broker the time. The other broker has applied only the entries that were in its log before. The two must
    not agree on the time of that entry."""
    stage = Stage(2, lease_ms=300)
    first = stage.elect()
    (second,) = stage.others(first)
    stage.run(2_000)
    stage.kill(second)
    stage.run(45_000)
    stage.start(second)
    machine = stage.machines[second]
    stage.until(
        lambda: machine.node is not None and machine.node.peers.knowledge.followed, "backup that knows its root"
    )
    stage.until(lambda: machine.replica is not None and machine.replica.told_ahead_ms is not None, "time that was told")
    stage.run(100)
    begun_ms, cluster_ms = stage.agenda.now_ms, stage.machines[first].broker_ms
    assert stage.machines[first].serving and stage.node(second).last_ms < cluster_ms - 40_000
    stage.kill(first)
    stage.run(1_500)
    stage.start(first)
    root = stage.elect()
    assert -1_000 < stage.machines[root].broker_ms - cluster_ms - (stage.agenda.now_ms - begun_ms) < 1_000


@pytest.mark.proves("R34")
def test_an_entry_that_waited_for_the_next_root_takes_nothing_from_the_time() -> None:
    """A backup has an entry that is not committed when both others are killed. It is the next root, ten seconds later,
    and commits that entry then."""
    stage = Stage(lease_ms=300)
    first = stage.elect()
    channel = stage.publisher(first, "patient", **{"x-message-ttl": 60_000})
    backup, third = stage.others(first)
    stage.level(first, backup, third)
    replica = stage.machines[backup].replica
    assert replica is not None
    last_index = replica.view().last_index
    channel.publish(b"", routing_key="patient", delivery_mode=2)
    stage.until(lambda: replica.view().last_index > last_index, "entry of the backup")
    assert replica.view().commit_index == last_index
    begun_ms, cluster_ms = stage.agenda.now_ms, stage.machines[first].broker_ms
    stage.kill(first)
    stage.kill(third)
    stage.run(10_000)
    stage.start(third)
    assert stage.elect() == backup
    gone_ms = stage.machines[backup].broker_ms - cluster_ms
    assert abs(gone_ms - (stage.agenda.now_ms - begun_ms)) <= 100


def restart(stage: Stage, name: str, shift_ms: int) -> None:
    """Restarts with a wall clock that is ahead by so much."""
    stage.kill(name)
    stage.machines[name].wall.shift_ms += shift_ms
    stage.start(name)


@pytest.mark.parametrize("loss", [Loss.NONE, Loss.ALL])
def test_time_goes_on_after_a_restart_of_all_brokers_with_any_wall_clocks(loss: Loss) -> None:
    """The clock of the last root was a day behind those of the others, and only the others restart."""
    stage = Stage(lease_ms=300)
    first = stage.elect()
    others = stage.others(first)
    for name in others:
        restart(stage, name, DAY_MS)
        stage.run(2_000)
    channel = stage.publisher(first, "patient", **{"x-message-ttl": 60_000})
    channel.rpc("queue.declare", queue="hasty", durable=True, arguments={"x-message-ttl": 3_000})
    channel.publish_confirmed(b"", routing_key="patient", delivery_mode=2)
    channel.publish_confirmed(b"", routing_key="hasty", delivery_mode=2)
    for _ in range(2):
        begun_ms, cluster_ms = stage.agenda.now_ms, max(stage.machines[name].broker_ms for name in stage.roots)
        for name in [name for name, machine in stage.machines.items() if machine.up]:
            stage.kill(name, loss)
        # The time during which all brokers were down counts.
        stage.run(5_000)
        stage.start(*others)
        root = stage.elect()
        gone_ms = stage.machines[root].broker_ms - cluster_ms
        assert 4_000 < gone_ms <= (stage.agenda.now_ms - begun_ms) * 11 // 10 + 1_500
        channel = stage.client(root).channel()
        assert channel.counts("patient")[0] == 1
        assert channel.counts("hasty")[0] == 0


@pytest.mark.parametrize("seed", range(4))
def test_messages_acknowledged_by_a_newly_started_backup_do_not_expire_early(seed: int) -> None:
    """Power fails everywhere as soon as a message is confirmed by two brokers, of which one has just started, with a
    clock that is a day ahead. That one is the next root."""
    stage = Stage(lease_ms=300, seed=seed)
    first = stage.elect()
    channel = stage.publisher(first, "patient", **{"x-message-ttl": 60_000})
    stage.level(first, *stage.others(first))
    missing, coming = stage.others(first)
    restart(stage, coming, DAY_MS)
    machine = stage.machines[coming]
    stage.until(lambda: machine.replica is not None and machine.replica.root == first, "backup that knows its root")
    stage.run(30)
    stage.kill(missing)
    channel.publish_confirmed(b"", routing_key="patient", delivery_mode=2)
    stage.kill(first, Loss.ALL)
    stage.kill(coming, Loss.ALL)
    stage.start(missing, coming)
    assert stage.elect() == coming
    assert stage.client(coming).channel().counts("patient")[0] == 1


def test_a_clock_that_was_put_right_meanwhile_takes_no_time_back() -> None:
    """The saved lead is larger than the lead of the broker's clock over the last entry."""
    stage = Stage(lease_ms=300)
    first = stage.elect()
    others = stage.others(first)
    for name in others:
        restart(stage, name, DAY_MS)
        stage.run(2_000)
    channel = stage.publisher(first, "patient", **{"x-message-ttl": 60_000})
    channel.publish_confirmed(b"", routing_key="patient", delivery_mode=2)
    cluster_ms = stage.machines[first].broker_ms
    stage.level(first, *others)
    for name in stage.machines:
        stage.kill(name, Loss.ALL)
        stage.machines[name].wall.shift_ms = 0
    stage.start(*others)
    root = stage.elect()
    assert 0 <= stage.machines[root].broker_ms - cluster_ms <= 5_000
    assert stage.client(root).channel().counts("patient")[0] == 1
