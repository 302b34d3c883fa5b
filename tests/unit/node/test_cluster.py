"""Three nodes with real logs and real clients: one serves, the others follow, and any of them may go."""

from __future__ import annotations

import pytest

from pandomq.broker.broker import Broker
from pandomq.limits import REMOVALS_DEFERRED_MS_MAX
from pandomq.replica.roles.transitions import Role
from tests.support.client import ClosedByBrokerError
from tests.unit.node.cluster_world import CLUSTER, NOWHERE, ClusterWorld, Connection, Loss, member


def publisher(world: ClusterWorld, name: str, queue: str = "q"):  # type: ignore[no-untyped-def]
    channel = world.client(name).channel()
    channel.rpc("queue.declare", queue=queue, durable=True)
    channel.rpc("confirm.select")
    return channel


def brokers(world: ClusterWorld) -> dict[str, Broker]:
    return {name: machine.node.broker for name, machine in world.machines.items() if machine.node is not None}


def held(broker: Broker) -> dict[str, list[tuple[int, bytes]]]:
    queues = broker.state.vhosts["/"].queues.values()
    return {queue.name: [(row[0], row[5].body) for row in queue.kernel.snapshot()] for queue in queues}


def agree(world: ClusterWorld) -> bool:
    views = [held(broker) for broker in brokers(world).values()]
    return all(view == views[0] for view in views)


@pytest.mark.proves("R8")
@pytest.mark.parametrize("seed", range(6))
def test_confirmed_messages_survive_the_loss_of_the_root(seed: int) -> None:
    world = ClusterWorld(seed=seed)
    first = world.elect()
    channel = publisher(world, first)
    for number in range(20):
        channel.publish_confirmed(b"%d" % number, routing_key="q", delivery_mode=2)
    delivery = channel.get("q", no_ack=False)
    assert delivery is not None and delivery.body == b"0"
    channel.send("basic.ack", delivery_tag=delivery.delivery_tag, multiple=False)
    # A confirm on the same channel proves the ack.
    channel.publish_confirmed(b"20", routing_key="q", delivery_mode=2)
    unconfirmed = b"in doubt"
    channel.publish(unconfirmed, routing_key="q", delivery_mode=2)
    world.kill(first, Loss.SOME if seed % 2 else Loss.NONE)
    killed_ms = world.now_ms
    second = world.elect()
    assert second != first
    assert world.now_ms - killed_ms < 500
    channel = world.client(second).channel()
    got = [channel.get("q", no_ack=True) for _ in range(20)]
    assert [one.body for one in got if one is not None] == [b"%d" % number for number in range(1, 21)]
    assert all(one is not None and one.redelivered for one in got)
    assert channel.drain("q") in ([], [unconfirmed])
    # The old root comes back as a backup, with what the new one has.
    publisher(world, second).publish_confirmed(b"after", routing_key="q", delivery_mode=2)
    world.start(first)
    world.until(lambda: agree(world) and world.node(first).following)
    assert world.root == second


def test_a_backup_refuses_a_client_and_names_the_root() -> None:
    world = ClusterWorld()
    root = world.elect()
    backup = next(name for name in world.machines if name != root)
    world.until(lambda: world.node(backup).following)
    for password in ("guest", "wrong"):
        connection = Connection(NOWHERE, world.socket(backup))
        connection.log_in(response=f"\0guest\0{password}".encode())
        with pytest.raises(ClosedByBrokerError) as refused:
            connection.tune_and_open()
        assert f"this broker is a backup; the root is {root} at {root}.example:5672" in str(refused.value)
        assert connection.server_properties["root"] == f"{root}.example:5672"


@pytest.mark.proves("R7")
def test_a_root_that_is_cut_off_steps_down_and_confirms_nothing() -> None:
    world = ClusterWorld()
    old = world.elect()
    channel = publisher(world, old)
    channel.publish_confirmed(b"safe", routing_key="q", delivery_mode=2)
    world.isolate(old)
    channel.publish(b"lost", routing_key="q", delivery_mode=2)
    with pytest.raises(ClosedByBrokerError, match="this broker is no longer the root"):
        channel.confirmed()
    assert world.machines[old].restarts
    new = world.elect()
    assert new != old
    publisher(world, new).publish_confirmed(b"next", routing_key="q", delivery_mode=2)
    world.mend()
    world.until(lambda: agree(world))
    assert world.client(new).channel().drain("q") == [b"safe", b"next"]
    assert world.root == new


def test_confirmed_messages_survive_a_power_loss_of_all_brokers() -> None:
    world = ClusterWorld()
    channel = publisher(world, world.elect())
    for number in range(50):
        channel.publish_confirmed(b"%d" % number, routing_key="q", delivery_mode=2)
    for name in world.machines:
        world.kill(name, Loss.ALL)
    for name in world.machines:
        world.start(name)
    root = world.elect()
    assert world.client(root).channel().drain("q")[:50] == [b"%d" % number for number in range(50)]


@pytest.mark.proves("C3", "C4", "C6")
def test_a_backup_that_was_away_for_long_gets_a_snapshot() -> None:
    world = ClusterWorld()
    root = world.elect()
    channel = publisher(world, root)
    away = next(name for name in world.machines if name != root)
    world.kill(away)
    for number in range(400):
        channel.publish_confirmed(b"%d" % number + bytes(2000), routing_key="q", delivery_mode=2)
        if number % 10:
            channel.get("q")
    world.run(REMOVALS_DEFERRED_MS_MAX + 1)
    # Their log in memory is lost with them; on disk it begins later by now.
    others = [name for name in world.machines if name != away]
    for name in others:
        world.kill(name)
    for name in others:
        world.start(name)
    root = world.elect()
    world.start(away)
    world.until(lambda: bool(world.machines[away].restarts) and agree(world))
    assert "is replaced by a snapshot" in world.machines[away].restarts[0]
    assert world.role(away) is Role.BACKUP
    world.kill(root)
    assert world.client(world.elect()).channel().counts("q")[0] == 40


@pytest.mark.proves("R18", "L7", "C3", "C4", "C6")
def test_a_backup_that_was_away_for_less_than_all_is_worth_gets_the_log() -> None:
    world = ClusterWorld(paging_bytes=100_000)
    channel = publisher(world, world.elect())
    away = next(name for name in world.machines if name != world.root)
    for number in range(350):
        channel.publish_confirmed(b"%d" % number + bytes(2000), routing_key="q", delivery_mode=2)
    world.kill(away)
    world.found(False)
    # Each snapshot lets the log before the one before it go, but for what somebody may want.
    for number in range(200):
        channel.publish_confirmed(b"%d" % number + bytes(2000), routing_key="q", delivery_mode=2)
        channel.get("q")
    # Their log in memory is lost with them.
    others = [name for name in world.machines if name != away]
    for name in others:
        world.kill(name)
    for name in others:
        world.start(name)
    world.elect()
    world.start(away)
    world.until(lambda: world.role(away) is Role.BACKUP and agree(world))
    assert world.machines[away].restarts == []


def test_a_wiped_backup_learns_everything_before_it_counts() -> None:
    world = ClusterWorld()
    root = world.elect()
    channel = publisher(world, root)
    channel.publish_confirmed(b"1", routing_key="q", delivery_mode=2)
    wiped = next(name for name in world.machines if name != root)
    world.kill(wiped)
    world.machines[wiped].wipe()
    world.found(False)
    world.start(wiped)
    world.until(lambda: world.role(wiped) is Role.LEARNER)
    world.until(lambda: world.role(wiped) is Role.BACKUP)
    assert agree(world)
    world.kill(root)
    assert world.client(world.elect()).channel().drain("q") == [b"1"]


def test_each_request_to_the_cluster_gets_its_own_answer() -> None:
    """A change of members waits for a broker that is not there. Requests that are made meanwhile end before it does."""
    world = ClusterWorld()
    root = world.elect()
    successor = next(name for name in world.machines if name != root)
    world.until(lambda: any(peer.in_sync for peer in world.node(root).peers.replica.view().peers))
    peers = world.node(root).peers
    changed: list[tuple[bool, str]] = []
    refused: list[tuple[bool, str]] = []
    handed: list[tuple[bool, str]] = []
    members = [member(name) for name in (*world.machines, "absent")]
    peers.change_members(members, lambda done, text: changed.append((done, text)))
    peers.hand_over("stranger", lambda done, text: refused.append((done, text)))
    assert refused == [(False, "this broker is not the root, or no backup is in sync")]
    assert changed == []
    peers.hand_over(successor, lambda done, text: handed.append((done, text)))
    world.until(lambda: bool(handed))
    assert handed == [(True, f"handed over to {successor}")]
    assert [done for done, _ in changed] == [False]


@pytest.mark.proves("R37")
def test_a_root_hands_over() -> None:
    world = ClusterWorld()
    old = world.elect()
    channel = publisher(world, old)
    channel.rpc("queue.declare", queue="passing", durable=False)
    for number in range(5):
        channel.publish_confirmed(b"%d" % number, routing_key="q", delivery_mode=2)
    delivered = channel.get("q", no_ack=False)
    assert delivered is not None and delivered.body == b"0"
    ended: list[tuple[bool, str]] = []
    successor = next(name for name in world.machines if name != old)
    world.until(lambda: world.node(successor).broker.state.vhosts["/"].queues["q"].kernel.ready_count == 5)
    asked_ms = world.now_ms
    world.node(old).peers.hand_over(successor, lambda done, text: ended.append((done, text)))
    with pytest.raises(ClosedByBrokerError, match="hands over"):
        channel.rpc("basic.qos", prefetch_count=1)
    world.until(lambda: world.root == successor)
    assert ended == [(True, f"handed over to {successor}")]
    assert world.now_ms - asked_ms < 200
    channel = world.client(successor).channel()
    got = [channel.get("q") for _ in range(5)]
    # Exactly what was delivered says so.
    assert [(one.body, one.redelivered) for one in got if one is not None] == [
        (b"0", True),
        (b"1", False),
        (b"2", False),
        (b"3", False),
        (b"4", False),
    ]
    # The cluster was there all the time: so is the queue.
    assert channel.counts("passing") == (0, 0)
    world.until(lambda: agree(world))


@pytest.mark.proves("R37")
def test_an_ack_just_before_a_hand_over_is_not_lost() -> None:
    world = ClusterWorld()
    old = world.elect()
    channel = publisher(world, old)
    for number in range(3):
        channel.publish_confirmed(b"%d" % number, routing_key="q", delivery_mode=2)
    successor = next(name for name in world.machines if name != old)
    world.until(lambda: world.node(successor).broker.state.vhosts["/"].queues["q"].kernel.ready_count == 3)
    consumer = world.client(old).channel()
    delivered = consumer.get("q", no_ack=False)
    assert delivered is not None and delivered.body == b"0"
    consumer.send("basic.ack", delivery_tag=delivered.delivery_tag, multiple=False)
    world.until(lambda: world.node(old).broker.deferral.pending)
    world.node(old).peers.hand_over(successor, lambda done, text: None)
    world.until(lambda: world.root == successor)
    channel = world.client(successor).channel()
    assert [one.body for one in (channel.get("q") for _ in range(3)) if one is not None] == [b"1", b"2"]


def test_long_queues_travel_with_their_pages() -> None:
    world = ClusterWorld(paging_bytes=40_000)
    root = world.elect()
    channel = publisher(world, root)
    away = next(name for name in world.machines if name != root)
    world.kill(away)
    for number in range(300):
        channel.publish_confirmed(b"%d" % number + bytes(1000), routing_key="q", delivery_mode=2)
    others = [name for name in world.machines if name != away]
    for name in others:
        world.kill(name)
    for name in others:
        world.start(name)
    root = world.elect()
    assert world.node(root).broker.state.vhosts["/"].queues["q"].kernel.pages()
    world.start(away)
    world.until(lambda: bool(world.machines[away].restarts) and world.role(away) is Role.BACKUP)
    queues = [broker.state.vhosts["/"].queues for broker in brokers(world).values()]
    world.until(lambda: all("q" in one and one["q"].kernel.ready_count == 300 for one in queues))
    world.kill(root)
    got = world.client(world.elect()).channel().drain("q")
    assert [body[:-1000] for body in got] == [b"%d" % number for number in range(300)]


def test_views_show_the_cluster() -> None:
    world = ClusterWorld()
    root = world.elect()
    world.run(500)
    view = world.node(root).views.cluster()
    assert (view.root, view.cluster) == (root, CLUSTER)
    assert {member.name: member.role for member in view.members} == {
        name: "root" if name == root else "backup" for name in world.machines
    }
    assert all(member.in_sync and member.log_index == view.members[0].log_index for member in view.members)
    away = next(name for name in world.machines if name != root)
    world.kill(away)
    publisher(world, root).publish_confirmed(bytes(1000), routing_key="q", delivery_mode=2)
    absent = next(member for member in world.node(root).views.cluster().members if member.name == away)
    assert (absent.role, absent.in_sync) == ("absent", False)
    assert absent.lag_bytes is not None and absent.lag_bytes > 1000


def test_a_hand_over_that_is_given_up_leaves_the_root_as_it_was() -> None:
    world = ClusterWorld()
    root = world.elect()
    channel = publisher(world, root)
    channel.publish_confirmed(b"1", routing_key="q", delivery_mode=2)
    successor = next(name for name in world.machines if name != root)
    world.clogged.add(frozenset((root, successor)))
    channel.publish_confirmed(b"2", routing_key="q", delivery_mode=2)
    ended: list[bool] = []
    world.node(root).peers.hand_over(successor, lambda done, _: ended.append(done))
    # The root goes on meanwhile, and after it.
    channel.publish_confirmed(b"3", routing_key="q", delivery_mode=2)
    assert ended == []
    world.until(lambda: bool(ended))
    channel.publish_confirmed(b"4", routing_key="q", delivery_mode=2)
    assert (ended, world.root, world.machines[root].restarts) == ([False], root, [])
    world.mend()
    world.until(lambda: agree(world))
    assert channel.drain("q") == [b"1", b"2", b"3", b"4"]
