"""The four levels of reliability: when each is confirmed, and what each survives."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq.replica.settings import ReplicaSettings
from tests.support.client import ClosedByBrokerError
from tests.unit.node.cluster_world import ClusterWorld, Loss

STALL_MS = 300


def stalled(world: ClusterWorld, *names: str) -> int:
    """The disks of these, or of all, do nothing for a while; says when they go on."""
    for name in names or world.machines:
        world.machines[name].disk.stall(world.now_ms, STALL_MS)
    return world.now_ms + STALL_MS


def publisher(world: ClusterWorld, **arguments: Any) -> Any:
    channel = world.client(world.elect()).channel()
    channel.rpc("queue.declare", queue="q", durable=True, arguments=arguments)
    channel.rpc("confirm.select")
    return channel


def backups(world: ClusterWorld) -> list[str]:
    return [name for name in world.machines if name != world.root]


def drained(world: ClusterWorld) -> list[bytes]:
    return world.client(world.elect()).channel().drain("q")


@pytest.mark.proves("R22")
@pytest.mark.parametrize("count", [2, 3])
def test_transient_messages_wait_for_memories_and_persistent_ones_for_disks(count: int) -> None:
    world = ClusterWorld(count)
    channel = publisher(world)
    until_ms = stalled(world)
    channel.publish(b"p", routing_key="q", delivery_mode=2)
    channel.publish(b"t", routing_key="q")
    early = channel.confirmed()
    assert (early.delivery_tag, early.multiple) == (2, False)
    assert world.now_ms < until_ms - STALL_MS // 2
    late = channel.confirmed()
    assert (late.delivery_tag, late.multiple) == (1, False)
    assert world.now_ms >= until_ms


def test_one_memory_is_not_enough() -> None:
    world = ClusterWorld(2)
    channel = publisher(world)
    world.clogged.add(frozenset(world.machines))
    channel.publish(b"t", routing_key="q")
    world.run(500)
    assert not channel.connection.socket.written
    world.mend()
    channel.confirmed()


def test_in_a_quorum_queue_all_messages_are_persistent() -> None:
    world = ClusterWorld()
    channel = publisher(world, **{"x-queue-type": "quorum"})
    until_ms = stalled(world)
    channel.publish_confirmed(b"t", routing_key="q")
    assert world.now_ms >= until_ms
    for name in world.machines:
        world.kill(name, Loss.ALL)
    for name in world.machines:
        world.start(name)
    assert drained(world) == [b"t"]


@pytest.mark.proves("R22")
@pytest.mark.parametrize("seed", range(4))
def test_a_takeover_keeps_messages_that_enough_brokers_have_received(seed: int) -> None:
    world = ClusterWorld(seed=seed)
    channel = publisher(world)
    stalled(world)
    for number in range(10):
        channel.publish_confirmed(b"%d" % number, routing_key="q")
    world.kill(world.elect(), Loss.ALL if seed % 2 else Loss.NONE)
    assert drained(world) == [b"%d" % number for number in range(10)]


@pytest.mark.proves("R22")
def test_a_restart_of_all_keeps_it_once_it_is_on_disks() -> None:
    world = ClusterWorld()
    channel = publisher(world)
    channel.rpc("queue.declare", queue="passing", durable=False)
    channel.publish_confirmed(b"gone", routing_key="passing", delivery_mode=2)
    for body, mode in ((b"t", 1), (b"p", 2)):
        channel.publish_confirmed(body, routing_key="q", delivery_mode=mode)
    world.run(50)
    for name in world.machines:
        world.kill(name, Loss.ALL)
    for name in world.machines:
        world.start(name)
    assert drained(world) == [b"t", b"p"]
    with pytest.raises(ClosedByBrokerError, match="no queue 'passing'"):
        world.client(world.elect()).channel().counts("passing")


@pytest.mark.proves("R22")
def test_a_power_loss_of_all_before_the_sync_takes_it() -> None:
    world = ClusterWorld()
    channel = publisher(world)
    channel.publish_confirmed(b"p", routing_key="q", delivery_mode=2)
    stalled(world)
    channel.publish_confirmed(b"t", routing_key="q")
    for name in world.machines:
        world.kill(name, Loss.ALL)
    for name in world.machines:
        world.start(name)
    assert drained(world) == [b"p"]


def test_acks_of_transient_messages_are_kept_too() -> None:
    world = ClusterWorld()
    channel = publisher(world)
    for number in range(4):
        channel.publish_confirmed(b"%d" % number, routing_key="q")
    got = channel.get("q", no_ack=False)
    channel.send("basic.ack", delivery_tag=got.delivery_tag, multiple=False)
    # A confirm on the same channel proves the ack: so it waits for the disks.
    until_ms = stalled(world)
    channel.publish_confirmed(b"4", routing_key="q")
    assert world.now_ms >= until_ms
    world.kill(world.elect())
    assert drained(world) == [b"1", b"2", b"3", b"4"]


@pytest.mark.proves("R22")
def test_alone_a_message_is_on_one_disk_or_in_one_memory() -> None:
    world = ClusterWorld(1)
    channel = publisher(world)
    until_ms = stalled(world)
    channel.publish_confirmed(b"t", routing_key="q")
    assert world.now_ms < until_ms
    channel.publish_confirmed(b"p", routing_key="q", delivery_mode=2)
    assert world.now_ms >= until_ms
    world.kill("n1", Loss.ALL)
    world.start("n1")
    assert drained(world) == [b"p"]


@pytest.mark.proves("R22")
def test_levels_are_shown() -> None:
    shown = {}
    for count in (1, 2):
        world = ClusterWorld(count)
        channel = publisher(world)
        channel.rpc("queue.declare", queue="quorum", durable=True, arguments={"x-queue-type": "quorum"})
        channel.rpc("queue.declare", queue="passing")
        channel.rpc("queue.declare", queue="private", exclusive=True)
        views = world.node(world.elect()).views.queues()
        shown[count] = {view.name: (view.level, view.transient_level) for view in views}
    nothing = {"passing": ("transient", "transient"), "private": ("transient", "transient")}
    assert shown[1] == {"q": ("persistent", "transient"), "quorum": ("persistent", "transient"), **nothing}
    assert shown[2] == {
        "q": ("reliable-persistent", "reliable-transient"),
        "quorum": ("reliable-persistent", "reliable-persistent"),
        **nothing,
    }


@pytest.mark.proves("R22", "C9")
def test_the_last_man_standing_shows_the_levels_that_it_can_keep() -> None:
    world = ClusterWorld(2, replica=ReplicaSettings(last_man_standing=True))
    channel = publisher(world)
    world.kill(backups(world)[0])
    channel.publish_confirmed(b"p", routing_key="q", delivery_mode=2)
    world.until(lambda: "last_man_standing" in world.node(world.elect()).views.cluster().alarms)
    [view] = world.node(world.elect()).views.queues()
    assert (view.level, view.transient_level) == ("persistent", "transient")


# The order of a commit.


@pytest.mark.proves("R23")
@pytest.mark.parametrize("slow", ["root", "backup", "both"])
def test_disks_work_side_by_side_and_the_confirm_waits_for_all(slow: str) -> None:
    """A the publish, B the root's disk, C to the backup, D its disk, E its answer, F the confirm."""
    world = ClusterWorld(2)
    channel = publisher(world)
    root = world.elect()
    [backup] = backups(world)
    world.run(300)
    chosen = {"root": [root], "backup": [backup], "both": [root, backup]}[slow]
    until_ms = stalled(world, *chosen)
    synced: dict[str, int] = {}
    replica = world.node(root).peers.replica

    def watch() -> bool:
        view = replica.view()
        if view.synced_index == view.last_index:
            synced.setdefault("root", world.now_ms)
        if view.peers[0].synced_index == view.last_index:
            synced.setdefault("backup", world.now_ms)
        return len(channel.connection.socket.written) > 0

    channel.publish(b"p", routing_key="q", delivery_mode=2)
    world.until(watch)
    channel.confirmed()
    # F after B and after D; both began before either was done, so that two slow disks are no slower than one.
    assert set(synced) == {"root", "backup"}
    assert until_ms <= max(synced.values()) <= world.now_ms < until_ms + STALL_MS // 2
    quick = {"root": "backup", "backup": "root"}.get(slow)
    assert quick is None or synced[quick] < until_ms - STALL_MS // 2
