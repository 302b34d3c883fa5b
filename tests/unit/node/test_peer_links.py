"""Brokers that find each other, lose each other, and refuse each other."""

from __future__ import annotations

import logging

import pytest

from pandomq.cluster.limits import LINK_HEARTBEAT_S, REDIAL_MS_MIN, WAITING_BYTES_MAX
from pandomq.cluster.peer_messages import PeerMessageKind
from pandomq.ids import ClusterId, NodeName
from pandomq.node.cluster_settings import ClusterSettings
from pandomq.replica.members.membership import Member
from tests.unit.node.link_world import CLUSTER, KEY, LinkWorld, Machine


@pytest.mark.proves("R2")
def test_three_brokers_dial_each_other_and_elect_a_root() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    assert world.all_linked()
    views = world.machines["n1"].links
    assert set(views) == {"n2", "n3"}
    assert views["n2"].state == "linked"
    # One connection for each pair and direction.
    assert len(world.ends) == 2 * 6
    assert views["n2"].amqp == "n2.example:5672"


def test_the_root_dies_and_another_takes_over() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    first = world.root
    assert first is not None
    world.kill(first)
    started_ms = world.now_ms
    world.until(lambda: world.root is not None)
    # The links were closed, so nobody waited for a lease to run out.
    assert world.now_ms - started_ms < 300


def test_a_broker_that_comes_back_is_linked_again() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    world.kill("n3")
    world.run(3_000)
    assert world.machines["n1"].links["n3"].state == "connecting: connection refused"
    world.start("n3")
    world.until(world.all_linked, 2_000)


def test_a_clogged_link_is_given_up_after_a_while_and_made_anew() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    world.clogged.add(frozenset(("n1", "n2")))
    world.until(lambda: not world.is_linked("n1", "n2") and not world.is_linked("n2", "n1"), 10_000)
    assert world.is_linked("n1", "n3") and world.is_linked("n2", "n3")
    world.clogged.clear()
    world.until(world.all_linked, 3_000)


def test_a_broker_that_restarts_causes_no_election_among_the_others() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    world.run(100)
    backup = next(name for name in world.machines if name != world.root)
    term = world.node("n1").peers.knowledge.term
    world.node(backup).peers.transitions.restart("for a test")
    world.until(lambda: world.machines[backup].restarts == ["for a test"])
    world.until(world.all_linked)
    world.run(2_000)
    assert {world.node(name).peers.knowledge.term for name in world.machines} == {term}


@pytest.mark.parametrize("listens", [True, False])
def test_a_secondary_knows_one_address_and_gets_to_know_all_primaries(listens: bool) -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    address = "n4.example:5672" if listens else ""
    joining = ClusterSettings(key=KEY, observer=True, join=("n2.example:5672",), advertise=address)
    world.machines["n4"] = Machine(world, "n4", joining, CLUSTER)
    if not listens:
        # Nobody can dial it back, so there are only halves.
        world.run(2_000)
        assert world.machines["n4"].links["n2"].state == "one-way: the peer does not connect to this broker"
        return
    world.until(lambda: all(world.is_linked("n4", name) for name in ("n1", "n2", "n3")))
    world.kill("n4")
    world.until(lambda: "n4" not in world.machines["n1"].links, 1_000)


def test_a_message_that_cannot_be_read_ends_the_link_it_came_on() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    links = world.node("n2").peer_links
    assert links is not None
    links.send("n3", PeerMessageKind.REPLICA, b"garbage")
    world.until(lambda: not world.is_linked("n3", "n2"), 100)
    assert "sent a malformed message" in world.machines["n3"].links["n2"].state
    world.until(world.all_linked)


def test_messages_that_a_peer_does_not_read_wait_and_then_are_dropped() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    links = world.node("n1").peer_links
    assert links is not None
    dialed = links._peers["n2"].dialed
    assert dialed is not None
    dialed.writing_paused = True
    for _ in range(4):
        links.send("n2", PeerMessageKind.REPLICA, bytes(WAITING_BYTES_MAX // 2))
    world.machines["n1"].turn()
    view = world.machines["n1"].links["n2"]
    assert WAITING_BYTES_MAX < view.waiting_bytes < 2 * WAITING_BYTES_MAX
    assert view.dropped >= 1


def test_messages_that_waited_are_sent_in_order_when_the_socket_accepts_them() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    links = world.node("n1").peer_links
    assert links is not None
    dialed = links._peers["n2"].dialed
    assert dialed is not None
    links.take_writes()
    dialed.writing_paused = True
    for number in range(3):
        links.send("n2", PeerMessageKind.REPLICA, bytes((number,)) * 10)
    assert [octets for other, octets in links.take_writes() if other is dialed] == []
    links.dialing.resume(dialed)
    links.send("n2", PeerMessageKind.REPLICA, b"last")
    sent = b"".join(bytes(octets) for other, octets in links.take_writes() if other is dialed)
    places = [sent.find(bytes((number,)) * 10) for number in range(3)]
    assert places == sorted(places) and -1 not in places
    assert sent.find(b"last") > places[-1]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"key": b"another"}, "n{a} and n{b} have different cluster keys"),
        ({"cluster_id": "other"}, "n{a} belongs to cluster {ida}, n{b} to cluster {idb}"),
    ],
)
def test_a_broker_that_does_not_belong_is_refused_and_both_sides_log_why(
    changes: dict[str, object], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world = LinkWorld(n3=changes)
    world.run(3_000)
    assert world.is_linked("n1", "n2")
    ids = {"1": CLUSTER, "3": changes.get("cluster_id", CLUSTER)}
    for one, other in (("1", "3"), ("3", "1")):
        text = reason.format(a=one, b=other, ida=ids[one], idb=ids[other])
        assert world.machines[f"n{one}"].links[f"n{other}"].state == f"connecting: {text}"
        assert any(text in record.message and "rejected a link from" in record.message for record in caplog.records)
        assert any(text in record.message and "no link to" in record.message for record in caplog.records)


def test_a_refusal_is_logged_once_while_it_stays_the_same(caplog: pytest.LogCaptureFixture) -> None:
    world = LinkWorld(2, n2={"key": b"another"})
    world.run(12_000)
    assert len([record for record in caplog.records if "no link to n2" in record.message]) == 1


def test_an_address_that_is_the_brokers_own_is_noticed() -> None:
    world = LinkWorld(2)
    peers = world.node("n1").peer_links
    assert peers is not None
    world.until(lambda: world.root is not None)
    world.kill("n2")
    world.run(100)
    peers.dialing.aim("n2", "n1.example:5672", world.now_ms)
    world.run(3_000)
    assert world.machines["n1"].links["n2"].state == (
        "connecting: n1 connected to itself: its own address is configured for n2"
    )


def test_a_second_broker_of_a_name_is_kept_out_while_the_first_is_there() -> None:
    world = LinkWorld(3)
    world.until(world.all_linked)
    world.machines["twin"] = Machine(world, "n3", world.machines["n3"].settings.cluster, CLUSTER)
    world.run(LINK_HEARTBEAT_S * 3_000)
    assert world.is_linked("n1", "n3")
    assert world.machines["twin"].links["n1"].state == "connecting: another broker with the name n3 is linked with n1"


def test_a_broker_that_lost_power_is_linked_again_as_soon_as_it_is_back() -> None:
    world = LinkWorld(3)
    world.until(world.all_linked)
    world.until(lambda: world.root is not None)
    victim, other = (name for name in world.machines if name != world.root)
    world.run(10)
    world.lose_power(victim)
    world.run(50)
    assert world.is_linked(other, victim), "it has heard nothing yet that says otherwise"
    world.start(victim)
    # Two attempts, the first of which is refused: the old life of the broker seems to be there still.
    world.run(4 * REDIAL_MS_MIN)
    assert world.is_linked(other, victim)
    assert world.is_linked(victim, other)


def change_primaries(world: LinkWorld, *names: str) -> None:
    """To these, none of whom need be a primary already."""
    root = world.root
    assert root is not None
    answers: list[tuple[bool, str]] = []
    members = [Member(NodeName(name), f"{name}.example:5672") for name in names]
    world.node(root).peers.change_members(members, lambda done, text: answers.append((done, text)))
    world.until(lambda: bool(answers))
    assert answers[0][0], answers
    world.until(lambda: world.root in names)


def hears_root(world: LinkWorld, name: str) -> bool:
    return world.node(name).peers.knowledge.root in {other for other in world.machines if other != name}


def with_outsider() -> LinkWorld:
    """n1 and n4 are the primaries; n5 is none, hears the root, and is in nobody's configuration."""
    world = LinkWorld(4)
    world.until(lambda: world.root is not None)
    joining = ClusterSettings(
        key=KEY,
        primaries=(Member(NodeName("n5"), "n5.example:5672"),),
        join=("n1.example:5672", "n4.example:5672"),
        advertise="n5.example:5672",
    )
    world.machines["n5"] = Machine(world, "n5", joining, ClusterId(""))
    world.until(lambda: hears_root(world, "n5"))
    change_primaries(world, "n1", "n4")
    world.run(500)
    world.kill("n5")
    world.run(100)
    return world


def test_a_broker_finds_the_root_after_all_primaries_that_it_knew_were_replaced() -> None:
    world = with_outsider()
    change_primaries(world, "n2", "n3")
    world.start("n5")
    world.until(lambda: hears_root(world, "n5"))


def test_a_broker_without_a_root_asks_the_brokers_that_it_is_linked_to() -> None:
    world = with_outsider()
    root = world.root
    assert root is not None
    other = "n4" if root == "n1" else "n1"
    world.clogged.add(frozenset((root, "n5")))
    world.start("n5")
    world.until(lambda: world.is_linked("n5", other))
    change_primaries(world, "n2", "n3")
    assert world.is_linked("n5", other) and not hears_root(world, "n5")
    world.kill(root)
    world.until(lambda: hears_root(world, "n5"))


@pytest.mark.parametrize("given", ["another primary", "an address to join"])
def test_a_broker_that_knows_one_other_is_dialed_before_there_is_a_link(given: str) -> None:
    world = LinkWorld(1)
    world.until(lambda: world.root is not None)
    first = "n1" if given == "another primary" else "n2"
    joining = ClusterSettings(
        key=KEY,
        primaries=(Member(NodeName(first), f"{first}.example:5672"),),
        join=() if given == "another primary" else ("n1.example:5672",),
        advertise="n2.example:5672",
    )
    world.machines["n2"] = Machine(world, "n2", joining, ClusterId(""))
    world.until(lambda: hears_root(world, "n2"))


def test_a_broker_that_founded_a_cluster_alone_is_dialed_after_it_was_replaced() -> None:
    world = LinkWorld(1)
    world.until(lambda: world.root is not None)
    joining = ClusterSettings(
        key=KEY, join=("n1.example:5672",), primaries=(Member(NodeName("n2"), "n2.example:5672"),)
    )
    world.machines["n2"] = Machine(world, "n2", joining, ClusterId(""))
    world.until(lambda: hears_root(world, "n2"))
    change_primaries(world, "n2")
    world.until(lambda: hears_root(world, "n1"))
    world.kill("n1")
    world.start("n1")
    world.until(lambda: hears_root(world, "n1"))
