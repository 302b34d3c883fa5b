"""Secondaries have the configuration and no messages; they come and go, and nobody depends on them (R3, R6)."""

from __future__ import annotations

from random import Random

import pytest

from pandomq.journal import limits
from pandomq.journal.limits import SENDING_IDLE_MS, Fsync, JournalSettings
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.log.configuration_source import ConfigurationSource
from pandomq.replica.roles.transitions import Role
from tests.unit.node.cluster_world import ClusterWorld, Machine
from tests.unit.node.link_world import CLUSTER, KEY, LinkWorld
from tests.unit.node.link_world import Machine as LinkedMachine
from tests.unit.node.test_cluster import held, publisher

AS_SECONDARY = ClusterSettings(observer=True)
BODY = bytes(1_000)


def join(world: ClusterWorld, name: str = "n4") -> None:
    if name not in world.machines:
        world.machines[name] = Machine(world, name, Random(name))
    world.machines[name].start(AS_SECONDARY)
    world.until(lambda: world.machines[name].node is not None and is_up_to_date(world, name))


def is_up_to_date(world: ClusterWorld, name: str) -> bool:
    root = world.root
    if root is None:
        return False
    members = {member.name: member for member in world.node(root).views.cluster().members}
    return name in members and members[name].in_sync is True and world.role(name) is Role.OBSERVER


def queues(world: ClusterWorld, name: str) -> set[str]:
    return set(world.node(name).broker.state.vhosts["/"].queues)


def size_of(world: ClusterWorld, name: str) -> int:
    return sum(len(file.content) for file in world.machines[name].disk._directory.files.values())


@pytest.mark.proves("R3", "R6")
def test_a_secondary_gets_the_configuration_and_no_message() -> None:
    world = ClusterWorld()
    root = world.elect()
    channel = publisher(world, root)
    for _ in range(100):
        channel.publish_confirmed(BODY, routing_key="q", delivery_mode=2)
    world.carried_bytes.clear()
    join(world)
    channel.rpc("queue.declare", queue="later", durable=True)
    channel.rpc("exchange.declare", exchange="e", type="topic", durable=True)
    channel.rpc("queue.bind", queue="later", exchange="e", routing_key="a.#")
    for _ in range(100):
        channel.publish_confirmed(BODY, routing_key="later", delivery_mode=2)
    world.run(500)
    assert queues(world, "n4") == queues(world, root) == {"q", "later"}
    assert held(world.node("n4").broker) == {"q": [], "later": []}
    assert len(list(world.node("n4").broker.state.vhosts["/"].router.exchanges["e"].bindings())) == 1
    assert world.carried_bytes["n4"] < 100 * len(BODY) < world.carried_bytes[next(iter({"n2", "n3"} - {root}))]


def test_a_declare_is_known_there_as_soon_as_it_is_committed() -> None:
    world = ClusterWorld()
    channel = publisher(world, world.elect())
    join(world)
    world.sending_ms = 0
    channel.rpc("queue.declare", queue="now", durable=True)
    world.run(5)
    assert "now" in queues(world, "n4")


def test_a_secondary_follows_each_root_and_never_becomes_one() -> None:
    world = ClusterWorld()
    first = world.elect()
    publisher(world, first)
    join(world)
    world.kill(first)
    second = world.elect()
    publisher(world, second, "another")
    world.until(lambda: "another" in queues(world, "n4"))
    assert world.machines["n4"].restarts == [f"this broker joins cluster {CLUSTER}"]
    world.kill(second)
    world.run(5_000)
    assert world.root is None, "one primary of three and a secondary elect nobody"
    world.start(first)
    third = world.elect()
    publisher(world, third, "once more")
    world.until(lambda: "once more" in queues(world, "n4"))


@pytest.mark.proves("R3")
def test_a_secondary_is_shown_while_it_is_there_and_leaves_no_trace() -> None:
    world = ClusterWorld()
    root = world.elect()
    publisher(world, root)
    join(world)
    world.run(100)
    for name in ("n1", "n2", "n3", "n4"):
        roles = {member.name: member.role for member in world.node(name).views.cluster().members}
        assert roles["n4"] == "secondary", name
    own = next(member for member in world.node(root).views.cluster().members if member.name == "n4")
    assert (own.in_sync, own.lag_bytes) == (True, 0)
    world.kill("n4")
    world.run(100)
    for name in ("n1", "n2", "n3"):
        assert "n4" not in {member.name for member in world.node(name).views.cluster().members}


def source_of(world: ClusterWorld, name: str) -> ConfigurationSource:
    source = world.node(name).peers.log.transfer.configuration
    assert source is not None
    return source


def forget_tail(world: ClusterWorld, name: str) -> None:
    """As if nothing of the log were in memory any more."""
    tail = world.node(name).peers.replica._core.tail
    tail.reset(tail.last_index, tail.last_term)


def far_behind(world: ClusterWorld) -> str:
    """It leaves, and the log that it would need goes as well."""
    root = world.elect()
    channel = publisher(world, root)
    join(world)
    world.kill("n4")
    channel.rpc("queue.declare", queue="meanwhile", durable=True)
    for _ in range(400):
        channel.publish_confirmed(BODY, routing_key="q", delivery_mode=2)
        channel.get("q")
    forget_tail(world, root)
    return root


def test_a_secondary_gets_the_configuration_anew_if_the_log_is_gone() -> None:
    world = ClusterWorld()
    root = far_behind(world)
    assert world.node(root)._disk.journal.first_index > 10  # type: ignore[union-attr]
    world.carried_bytes.clear()
    restarts = len(world.machines["n4"].restarts)
    join(world)
    assert world.machines["n4"].restarts[restarts:] == ["the store is replaced by a snapshot of the root"]
    assert queues(world, "n4") == {"q", "meanwhile"}
    assert world.carried_bytes["n4"] < 20_000
    # It goes on from there, also after a restart of its own, and takes snapshots itself.
    channel = world.client(root).channel()
    channel.rpc("queue.declare", queue="after", durable=True)
    world.until(lambda: "after" in queues(world, "n4"))
    world.kill("n4")
    join(world)
    assert queues(world, "n4") == {"q", "meanwhile", "after"}


def test_a_secondary_gets_the_configuration_anew_if_the_log_is_much_longer() -> None:
    world = ClusterWorld()
    root = world.elect()
    channel = publisher(world, root)
    for _ in range(40):
        channel.publish_confirmed(BODY, routing_key="q", delivery_mode=2)
    source_of(world, root).log_bytes_max = 10_000
    forget_tail(world, root)
    join(world)
    assert "the store is replaced by a snapshot of the root" in world.machines["n4"].restarts
    assert held(world.node("n4").broker) == {"q": []}


def test_several_secondaries_that_join_at_once_get_the_same_configuration() -> None:
    world = ClusterWorld()
    root = far_behind(world)
    source = source_of(world, root)
    for name in ("n5", "n6"):
        world.machines[name] = Machine(world, name, Random(name))
        world.machines[name].start(AS_SECONDARY)
    join(world)
    world.until(lambda: all(is_up_to_date(world, name) for name in ("n5", "n6")))
    assert source._count == 1
    source.work(world.now_ms + SENDING_IDLE_MS + 1, is_root=True)
    assert source._made is None, "nobody has asked for a while"


def test_the_disk_of_a_secondary_does_not_grow_with_published_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDARY_SEGMENT_BYTES", limits.SEGMENT_BYTES_MIN)
    monkeypatch.setattr(limits, "SECONDARY_LOG_BYTES", 2_000)
    world = ClusterWorld()
    channel = publisher(world, world.elect())
    join(world)
    sizes = []
    for _ in range(6):
        for _ in range(120):
            channel.publish_confirmed(BODY, routing_key="q", delivery_mode=2)
        world.run(200)
        sizes.append(size_of(world, "n4"))
    assert max(sizes) < 2 * sizes[1], "it takes snapshots and gives back what they cover"
    assert max(sizes) < 10 * limits.SEGMENT_BYTES_MIN
    assert held(world.node("n4").broker) == {"q": []}


def test_a_secondary_that_becomes_a_primary_begins_with_an_empty_store() -> None:
    world = ClusterWorld()
    root = world.elect()
    channel = publisher(world, root)
    for number in range(10):
        channel.publish_confirmed(b"%d" % number, routing_key="q", delivery_mode=2)
    join(world)
    world.run(500)
    world.kill("n4")
    world.found(False)
    world.start("n4")
    world.until(lambda: held(world.node("n4").broker) == held(world.node(root).broker), 10_000)
    assert "the store was set aside, and is fetched from the root again" in world.machines["n4"].restarts
    assert world.role("n4") is Role.LEARNER


def test_a_primary_that_becomes_a_secondary_keeps_no_messages() -> None:
    world = ClusterWorld()
    root = world.elect()
    channel = publisher(world, root)
    channel.publish_confirmed(BODY, routing_key="q", delivery_mode=2)
    backup = next(name for name in world.machines if name != root)
    world.kill(backup)
    join(world, backup)
    assert held(world.node(backup).broker) == {"q": []}
    assert "the store was set aside, and is fetched from the root again" in world.machines[backup].restarts


def test_the_journal_of_a_secondary_is_small() -> None:
    settings = JournalSettings().of_secondary()
    assert settings.segment_bytes < JournalSettings().segment_bytes
    assert settings.fsync is Fsync.INTERVAL
    assert JournalSettings(fsync=Fsync.NEVER, segment_bytes=8192).of_secondary().segment_bytes == 8192


# Links.


def as_secondary(name: str, *join: str) -> ClusterSettings:
    return ClusterSettings(key=KEY, observer=True, join=join, advertise=f"{name}.example:5672")


@pytest.mark.proves("R3")
def test_a_secondary_is_linked_to_all_primaries_and_to_no_secondary() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    world.machines["n4"] = LinkedMachine(world, "n4", as_secondary("n4", "n1.example:5672"), CLUSTER)
    world.until(lambda: all(world.is_linked("n4", name) for name in ("n1", "n2", "n3")))
    both = as_secondary("n5", "n4.example:5672", "n2.example:5672")
    world.machines["n5"] = LinkedMachine(world, "n5", both, CLUSTER)
    world.until(lambda: all(world.is_linked("n5", name) for name in ("n1", "n2", "n3")))
    world.run(3_000)
    assert not world.is_linked("n5", "n4") and "n5" not in world.machines["n4"].links
    assert world.node("n4").peers.linked == world.node("n5").peers.linked == {"n1", "n2", "n3"}


def test_a_broker_that_dials_a_secondary_is_refused_with_the_addresses_of_the_primaries(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    world.machines["n4"] = LinkedMachine(world, "n4", as_secondary("n4", "n1.example:5672"), CLUSTER)
    world.until(lambda: all(world.is_linked("n4", name) for name in ("n1", "n2", "n3")))
    world.machines["n5"] = LinkedMachine(world, "n5", as_secondary("n5", "n4.example:5672"), CLUSTER)
    world.run(2_000)
    assert world.node("n5").peers.linked == set()
    assert "n4 is a secondary and connects to primaries only: n1 at n1.example:5672, n2 at" in caplog.text


def test_a_secondary_links_again_with_each_primary() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    world.machines["n4"] = LinkedMachine(world, "n4", as_secondary("n4", "n1.example:5672"), CLUSTER)
    world.until(lambda: all(world.is_linked("n4", name) for name in ("n1", "n2", "n3")))
    for name in ("n1", "n2", "n3"):
        world.kill(name)
        world.until(lambda: name not in world.node("n4").peers.linked)  # noqa: B023
        world.start(name)
        world.until(lambda: world.is_linked("n4", name))  # noqa: B023
    assert world.node("n4").peers.knowledge.advertised.keys() == {"n1", "n2", "n3", "n4"}
    world.kill("n4")
    world.until(lambda: "n4" not in world.node("n1").peers.knowledge.advertised)


def test_a_secondary_links_once_with_each_primary_known_by_name_and_by_address(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    primaries = ("n1", "n2", "n3")
    addresses = [f"{name}.example:5672" for name in primaries]
    world.machines["n4"] = LinkedMachine(world, "n4", as_secondary("n4", *addresses), CLUSTER)
    world.until(lambda: all(world.is_linked("n4", name) for name in primaries))
    world.run(2_000)
    assert "connected again" not in caplog.text
    assert all(world.is_linked("n4", name) for name in primaries)


def test_primaries_known_only_from_another_broker_are_not_forgotten() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    world.machines["n4"] = LinkedMachine(world, "n4", as_secondary("n4", "n1.example:5672"), CLUSTER)
    links = world.node("n4").peer_links
    assert links is not None
    world.until(lambda: "n3" in links.dialing.targets)
    assert not world.node("n4").peers.knowledge.membership.names, "the log has not come yet"
    world.kill("n3")
    world.run(20)
    assert "n3" in links.dialing.targets
    world.start("n3")
    world.until(lambda: world.is_linked("n4", "n3"))
