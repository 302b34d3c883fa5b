"""A root that is to stop: it hands over if it can, and stays for as long as the next one needs it."""

from __future__ import annotations

import pytest

from pandomq.node.broker_state import BrokerState
from pandomq.node.graceful_stop import HAND_OVER_MS_MAX
from pandomq.node.log.handover_wait import HANDOVER_WAIT_MS
from pandomq.replica.settings import ReplicaSettings
from tests.support.client import ClosedByBrokerError
from tests.unit.node.cluster_world import ClusterWorld
from tests.unit.node.test_cluster import agree, publisher


def stop(world: ClusterWorld, name: str) -> bool:
    """As a process does that was asked to end; whether its life ended of it."""
    lives = world.machines[name].lives
    node = world.node(name)
    node.graceful_stop.begin()
    world.until(lambda: world.machines[name].lives > lives or node.graceful_stop.over)
    return world.machines[name].lives > lives


@pytest.mark.proves("R37")
@pytest.mark.parametrize("count", [2, 3])
def test_the_next_root_serves_before_the_last_one_stops(count: int) -> None:
    world = ClusterWorld(count)
    old = world.elect()
    channel = publisher(world, old)
    channel.publish_confirmed(b"kept", routing_key="q", delivery_mode=2)
    others = [name for name in world.machines if name != old]
    if count == 3:
        # One is away: the two that are left have to agree on who is next.
        world.kill(others.pop())
        channel.publish_confirmed(b"kept", routing_key="q", delivery_mode=2)
    began_ms = world.now_ms
    assert stop(world, old)
    assert world.now_ms - began_ms < 700
    (heir,) = others
    assert world.root == heir
    world.kill(old)
    with pytest.raises(ClosedByBrokerError, match=f"this broker hands over to {heir}.*next root is {heir}"):
        channel.rpc("basic.qos", prefetch_count=1)
    if count == 2:
        # Half is enough to stay in office.
        world.run(3_000)
        assert world.root == heir
        channel = world.client(heir).channel()
        got = channel.get("q")
        assert got is not None and (got.body, got.redelivered) == (b"kept", False)


@pytest.mark.parametrize("seed", range(5))
def test_the_next_root_stays_root_when_the_last_one_stops(seed: int) -> None:
    world = ClusterWorld(3, seed)
    old = world.elect()
    publisher(world, old)
    assert stop(world, old)
    heir = world.root
    world.kill(old)
    world.run(3_000)
    assert heir is not None and world.root == heir
    assert all(machine.restarts == [] for name, machine in world.machines.items() if name != old)


def test_a_root_that_has_handed_over_sends_clients_to_the_next_one() -> None:
    world = ClusterWorld(2)
    old = world.elect()
    publisher(world, old)
    (heir,) = (name for name in world.machines if name != old)
    world.node(old).graceful_stop.begin()
    world.until(lambda: world.node(old).peers.life.state is BrokerState.HANDED_OVER)
    world.machines[heir].disk.stall(world.now_ms, 1_000)
    # Those who were there have been told; then others come.
    world.run(1)
    with pytest.raises(ClosedByBrokerError, match=f"this broker is a backup; the next root is {heir}"):
        world.client(old)
    world.until(lambda: agree(world))


def test_a_root_stops_although_the_next_one_fails_to_serve() -> None:
    world = ClusterWorld(2)
    old = world.elect()
    publisher(world, old)
    (heir,) = (name for name in world.machines if name != old)
    lives = world.machines[old].lives
    world.node(old).graceful_stop.begin()
    world.until(lambda: world.node(old).peers.life.state is BrokerState.HANDED_OVER)
    began_ms = world.now_ms
    world.machines[heir].disk.stall(world.now_ms, 10_000)
    world.until(lambda: world.machines[old].lives > lives)
    assert world.now_ms - began_ms <= HANDOVER_WAIT_MS + 10
    world.until(lambda: world.root is not None and agree(world), limit_ms=40_000)


def test_without_a_backup_in_sync_the_hand_over_is_tried_for_a_while() -> None:
    world = ClusterWorld(2, replica=ReplicaSettings(min_copies=1))
    old = world.elect()
    (heir,) = (name for name in world.machines if name != old)
    world.until(lambda: agree(world))
    world.machines[heir].disk.stall(world.now_ms, 60_000)
    channel = publisher(world, old)
    channel.publish_confirmed(b"kept", routing_key="q", delivery_mode=2)
    began_ms = world.now_ms
    assert not stop(world, old)
    assert HAND_OVER_MS_MAX - 100 <= world.now_ms - began_ms <= HAND_OVER_MS_MAX + 100


def test_a_broker_that_is_no_root_or_is_alone_stops_at_once() -> None:
    world = ClusterWorld(3)
    root = world.elect()
    other = next(name for name in world.machines if name != root)
    began_ms = world.now_ms
    assert not stop(world, other)
    alone = ClusterWorld(1)
    assert not stop(alone, alone.elect())
    assert world.now_ms == began_ms
