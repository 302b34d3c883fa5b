"""Links between brokers: the events that end them, and those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq.cluster.limits import LINK_HEARTBEAT_S
from pandomq.cluster.proxy.limits import ROOT_WAIT_MS
from pandomq.sim.cluster.network_faults import both_ways
from pandomq.sim.network.byte_network import NetworkFault
from tests.sim.scenarios.stage import Stage

HOUR_MS = 3_600_000


def linked_since_ms(stage: Stage, name: str) -> dict[str, int]:
    return {link.name: link.since_ms for link in stage.links(name) if link.linked}


@pytest.mark.proves("R10", "R34")
def test_brokers_stay_linked_when_a_clock_is_set_forward() -> None:
    """A broker whose wall clock is an hour behind sets its time forward when it has followed the log for the first
    time: no peer has been silent for an hour."""
    stage = Stage(lease_ms=300, start=False)
    for machine in stage.machines.values():
        machine.wall.shift_ms = 0 if machine.name == "n1" else -HOUR_MS
    stage.start(*stage.machines)
    root = stage.elect()
    channel = stage.publisher(root)
    linked = {name: linked_since_ms(stage, name) for name in stage.machines}
    for _ in range(20):
        channel.publish_confirmed(b"", routing_key="q", delivery_mode=2)
        stage.run(500)
    assert stage.roots == [root]
    assert {name: linked_since_ms(stage, name) for name in stage.machines} == linked


def test_bytes_that_a_cut_held_back_arrive_when_it_is_over() -> None:
    stage = Stage(lease_ms=3_000)
    root = stage.elect()
    other, _ = stage.others(root)
    channel = stage.publisher(root)
    since_ms = linked_since_ms(stage, root)
    stage.cut_one_way(root, other)
    channel.publish_confirmed(b"", routing_key="q", delivery_mode=2)
    stage.run(1_000)
    assert stage.machines[other].journal.last_index < stage.machines[root].journal.last_index
    stage.heal()
    stage.level(root, other)
    assert linked_since_ms(stage, root) == since_ms


@pytest.mark.proves("R9")
def test_connections_that_are_reset_are_made_anew() -> None:
    """The root remains root: its other backup still follows it."""
    stage = Stage(lease_ms=1_000)
    root = stage.elect()
    other, third = stage.others(root)
    channel = stage.publisher(root)
    for _ in range(5):
        channel.publish(b"", routing_key="q", delivery_mode=2)
        stage.network.reset([(root, other)])
        stage.run(20)
        assert other not in linked_since_ms(stage, root)
        stage.run(400)
        assert other in linked_since_ms(stage, root)
        channel.confirmed()
    stage.level(root, other, third)
    assert stage.roots == [root] and channel.counts("q")[0] == 5


@pytest.mark.proves("R9")
@pytest.mark.parametrize("one_way", [True, False])
def test_brokers_that_cannot_dial_each_other_are_linked_by_way_of_a_third(one_way: bool) -> None:
    stage = Stage(lease_ms=3_000)
    root = stage.elect()
    other, third = stage.others(root)
    channel = stage.publisher(root)
    paths = frozenset([(root, other)] if one_way else both_ways((root, other)))
    stage.network.impose(NetworkFault(refused=paths))
    stage.network.reset(paths)

    def states() -> set[str]:
        return {link.state for name in (root, other) for link in stage.links(name) if link.name in (root, other)}

    stage.until(lambda: states() == {f"linked through {third}"}, "detour", 2_000)
    channel.publish_confirmed(b"", routing_key="q", delivery_mode=2)
    stage.level(root, other)
    stage.heal()
    stage.until(lambda: states() == {"linked"}, "direct link", 30_000)
    assert stage.roots == [root]


@pytest.mark.parametrize("to_root", [True, False])
def test_a_connection_that_loses_everything_is_given_up_after_two_heartbeats(to_root: bool) -> None:
    stage = Stage(lease_ms=6_000)
    root = stage.elect()
    other, _ = stage.others(root)
    since_ms = linked_since_ms(stage, root)[other]
    assert stage.network.break_off((other, root) if to_root else (root, other))
    stage.run(2_000 * LINK_HEARTBEAT_S - 1_500)
    assert linked_since_ms(stage, root)[other] == since_ms
    stage.until(lambda: linked_since_ms(stage, root).get(other, 0) > since_ms, "new link", 4_000)
    stage.run(1_000)
    assert {link.state for link in stage.links(root)} == {"linked"}


@pytest.mark.proves("R15")
@pytest.mark.parametrize("to_root", [True, False])
def test_a_client_is_answered_although_its_tunnel_loses_everything(to_root: bool) -> None:
    """Within the time for which a client's request would wait for a root, although the root never failed."""
    stage = Stage(lease_ms=6_000, access="proxy")
    root = stage.elect()
    other, third = stage.others(root)
    stage.level(root, other, third)
    stage.run(500)
    client = stage.client(other)
    channel = client.channel()
    channel.rpc("queue.declare", queue="q", durable=True)
    path = (other, root) if to_root else (root, other)
    while stage.network.break_off(path):
        """One connection at a time, or all."""
    channel.send("queue.declare", queue="r", durable=True)
    socket: Any = client.socket
    stage.until(lambda: bool(socket.written), "answer", ROOT_WAIT_MS)
    channel.expect("queue.declare-ok")
    assert stage.roots == [root]


def test_a_narrow_path_takes_its_time_and_holds_back_its_writer() -> None:
    stage = Stage(lease_ms=3_000)
    root = stage.elect()
    other, third = stage.others(root)
    channel = stage.publisher(root)
    stage.level(root, other, third)
    stage.network.impose(NetworkFault(rates={(root, other): 100}))
    begun_ms = stage.agenda.now_ms
    for _ in range(3):
        channel.publish_confirmed(bytes(50_000), routing_key="q", delivery_mode=2)
    assert stage.agenda.now_ms - begun_ms < 500, "the other copy is enough"
    stage.until(lambda: any(link.waiting_bytes for link in stage.links(root)), "writer that waits", 500)
    stage.level(root, other)
    assert 1_400 < stage.agenda.now_ms - begun_ms < 4_000
