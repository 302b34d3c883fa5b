"""Brokers that do not reach each other, but both reach a third: it passes on what they say (R29)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from pandomq.cluster import limits
from pandomq.kernel import DeliveryRun, SettleRun
from pandomq.methods import (
    BasicAck,
    BasicConsume,
    BasicConsumeOk,
    ConfirmSelect,
    QueueDeclare,
    QueueDeclareOk,
)
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.node.peers import dialing as peer_dialing
from pandomq.node.peers import relays
from pandomq.node.peers.links import PeerLinks
from tests.unit.node.link_world import CLUSTER, KEY, LinkWorld, Machine
from tests.unit.node.raw_client import Heard, RawClient
from tests.unit.node.test_front_service import SHARED, backups, hears, make_world, methods

SOON_MS = 15_000
"""For a link to be missed, and to be made by another way."""


def cut(world: LinkWorld, one: str, *others: str) -> None:
    world.clogged.update(frozenset((one, other)) for other in others)


def peers_of(world: LinkWorld, name: str) -> PeerLinks:
    peers = world.node(name).peer_links
    assert peers is not None
    return peers


def goes_through(world: LinkWorld, one: str, other: str, third: str) -> bool:
    state = f"linked through {third}"
    return all(world.machines[a].links[b].state == state for a, b in ((one, other), (other, one)))


def detoured(world: LinkWorld) -> tuple[str, str, str]:
    """The root, a backup that does not reach it any more, and the one that both reach, once they are linked so."""
    root, (cut_off, third) = world.root, backups(world)
    assert root is not None
    cut(world, root, cut_off)
    world.until(lambda: goes_through(world, cut_off, root, third), SOON_MS)
    return root, cut_off, third


def secondary(world: LinkWorld) -> None:
    joining = ClusterSettings(
        key=KEY, observer=True, join=("n1.example:5672",), advertise="n4.example:5672", access="proxy"
    )
    world.machines["n4"] = Machine(world, "n4", joining, CLUSTER)
    world.until(lambda: world.node("n4").service_state.takes_clients and world.all_linked())


def bodies(heard: Iterable[Heard]) -> list[bytes]:
    runs = [item for item in heard if isinstance(item, DeliveryRun)]
    return [bytes(run[position][4].body) for run in runs for position in range(len(run))]


def confirmed(client: RawClient, world: LinkWorld, body: bytes) -> None:
    if not any(isinstance(item, SettleRun) for item in client.publish("", "q", body)):
        hears(client, world, lambda item: isinstance(item, SettleRun), SOON_MS)


@pytest.mark.proves("R29")
def test_a_backup_that_is_cut_off_from_the_root_follows_it_by_way_of_another() -> None:
    world = make_world()
    term = world.node("n1").peers.knowledge.term
    root, cut_off, third = detoured(world)
    assert world.root == root and world.node(cut_off).peers.knowledge.root == root
    assert len(peers_of(world, third).relays) >= 2
    world.until(lambda: {member.in_sync for member in world.node(root).views.cluster().members} == {True})
    assert {world.node(name).peers.knowledge.term for name in world.machines} == {term}, "nobody had to be elected"


@pytest.mark.proves("R29")
@pytest.mark.parametrize("is_secondary", [True, False])
def test_clients_of_a_broker_that_is_cut_off_go_on(is_secondary: bool) -> None:
    world = make_world()
    if is_secondary:
        secondary(world)
    root = world.root
    assert root is not None
    name = "n4" if is_secondary else backups(world)[0]
    publisher, consumer = RawClient(world, name), RawClient(world, name)
    publisher.say(SHARED)
    publisher.say(ConfirmSelect(False))
    assert methods(consumer.say(BasicConsume("q", "tag"))) == [BasicConsumeOk("tag")]
    confirmed(publisher, world, b"before")
    assert bodies(consumer.heard) == [b"before"]
    cut(world, root, name)
    confirmed(publisher, world, b"while it is cut")
    # Its unacked messages are delivered again.
    world.until(lambda: b"while it is cut" in bodies(consumer.heard), SOON_MS)
    assert set(bodies(consumer.heard)) == {b"before", b"while it is cut"}
    consumer.say(BasicAck(0, True))
    assert methods(publisher.say(QueueDeclare("another", durable=True))) == [QueueDeclareOk("another", 0, 0)]
    confirmed(publisher, world, b"after")
    world.until(lambda: bodies(consumer.heard) == [b"after"], SOON_MS)
    consumer.say(BasicAck(0, True))
    assert methods(publisher.say(QueueDeclare("q", passive=True))) == [QueueDeclareOk("q", 0, 1)]
    consumer.hang_up()
    world.run(1_000)
    assert methods(publisher.say(QueueDeclare("q", passive=True))) == [QueueDeclareOk("q", 0, 0)]
    assert len(world.node(root).broker.clients) == 1, "of those who came by the direct way nobody is left"


def test_a_broker_that_reaches_no_broker_that_reaches_the_root_has_no_detour() -> None:
    world = make_world()
    root, (one, other) = world.root, backups(world)
    assert root is not None
    cut(world, root, one, other)
    world.run(SOON_MS // 2)
    assert not any(world.is_linked(a, b) for a, b in ((root, one), (root, other), (one, root), (other, root)))
    assert [len(peers_of(world, name).relays) for name in world.machines] == [0, 0, 0]
    assert world.root in (one, other), "they are two of three, and reach each other"


def test_nothing_goes_through_two_brokers() -> None:
    world = LinkWorld(4)
    world.until(lambda: world.root is not None and world.all_linked())
    # In a row: n1 - n2 - n3 - n4.
    for one, others in (("n1", ("n3", "n4")), ("n2", ("n4",))):
        cut(world, one, *others)
    world.until(lambda: goes_through(world, "n1", "n3", "n2") and goes_through(world, "n2", "n4", "n3"), 2 * SOON_MS)
    world.run(SOON_MS // 3)
    assert not world.is_linked("n1", "n4") and not world.is_linked("n4", "n1")


def test_a_backup_returns_to_the_direct_link_and_keeps_its_working_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer_dialing, "KNOCK_MS", 1_000)
    world = make_world()
    root, cut_off, third = detoured(world)
    client = RawClient(world, cut_off)
    client.say(SHARED)
    client.say(ConfirmSelect(False))
    world.run(3_000)
    assert goes_through(world, cut_off, root, third), "there is no other way yet"
    world.clogged.clear()
    world.until(lambda: all(world.machines[cut_off].links[name].state == "linked" for name in (root, third)), SOON_MS)
    world.until(world.all_linked)
    confirmed(client, world, b"by the old tunnel")
    assert len(peers_of(world, third).relays) == 1
    client.hang_up()
    late = RawClient(world, cut_off)
    assert [type(method) for method in methods(late.say(SHARED))] == [QueueDeclareOk]
    world.run(1_000)
    assert not len(peers_of(world, third).relays), "who comes now goes directly"


@pytest.mark.proves("R16")
def test_the_loss_of_the_relaying_broker_is_no_sign_that_the_root_is_gone() -> None:
    """The relay that disconnects need not be the root, which would rely on the promise of its backup until it knows."""
    world = make_world()
    root, cut_off, third = detoured(world)
    told: list[tuple[str, bool]] = []
    replica = world.node(cut_off).peers.replica
    original: Callable[..., None] = replica.disconnected

    def disconnected(peer: str, *, by_peer: bool) -> None:
        told.append((peer, by_peer))
        original(peer, by_peer=by_peer)

    replica.disconnected = disconnected  # type: ignore[method-assign]
    world.kill(third)
    world.run(100)
    assert sorted(told) == sorted([(third, True), (root, False)])


def test_a_broker_relays_a_bounded_number_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relays, "RELAYS_MAX", 1)
    world = make_world()
    root, (cut_off, third) = world.root, backups(world)
    assert root is not None
    cut(world, root, cut_off)
    world.run(SOON_MS // 2)
    assert len(peers_of(world, third).relays) <= 1
    assert not world.is_linked(root, cut_off), "it takes two connections"


def test_a_relay_that_is_silent_for_long_is_given_up() -> None:
    world = make_world()
    _, _, third = detoured(world)
    passing = peers_of(world, third).relays
    for relay in passing._relays:
        relay.heard_ms -= 2 * limits.RELAY_SILENT_MS_MAX
    count = len(passing)
    passing.tick(world.now_ms)
    assert count and not len(passing)


def test_a_relaying_broker_restarts_without_its_relays() -> None:
    world = make_world()
    root, cut_off, third = detoured(world)
    world.node(third).peers.transitions.restart("for a test")
    world.until(lambda: world.machines[third].restarts == ["for a test"])
    world.until(lambda: not world.is_linked(root, cut_off), 1_000)
    world.until(lambda: goes_through(world, cut_off, root, third), SOON_MS)
