"""Brokers that find each other, lose each other, and refuse each other."""

from __future__ import annotations

import logging

import pytest

from pandomq.cluster.limits import LINK_HEARTBEAT_S, WAITING_BYTES_MAX
from pandomq.cluster.parcels import Kind
from pandomq.node.cluster_settings import ClusterSettings
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


def test_who_comes_back_is_linked_again() -> None:
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


def test_a_broker_that_begins_again_parts_from_the_others_without_an_election_among_them() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    world.run(100)
    backup = next(name for name in world.machines if name != world.root)
    term = world.node("n1").peers.notices.term
    world.node(backup).peers.store_replaced("for a test")
    world.until(lambda: world.machines[backup].restarts == ["for a test"])
    world.until(world.all_linked)
    world.run(2_000)
    assert {world.node(name).peers.notices.term for name in world.machines} == {term}


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
        assert world.machines["n4"].links["n2"].state == "half: it does not dial this broker"
        return
    world.until(lambda: all(world.is_linked("n4", name) for name in ("n1", "n2", "n3")))
    world.kill("n4")
    world.until(lambda: "n4" not in world.machines["n1"].links, 1_000)


def test_a_message_that_cannot_be_read_ends_the_link_it_came_on() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    links = world.node("n2").peer_links
    assert links is not None
    links.send("n3", Kind.REPLICA, b"garbage")
    world.until(lambda: not world.is_linked("n3", "n2"), 100)
    assert "cannot be read" in world.machines["n3"].links["n2"].state
    world.until(world.all_linked)


def test_what_a_peer_does_not_take_waits_and_then_is_dropped() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    links = world.node("n1").peer_links
    assert links is not None
    dialed = links._peers["n2"].dialed
    assert dialed is not None
    dialed.writing_paused = True
    for _ in range(4):
        links.send("n2", Kind.REPLICA, bytes(WAITING_BYTES_MAX // 2))
    world.machines["n1"].turn()
    view = world.machines["n1"].links["n2"]
    assert WAITING_BYTES_MAX < view.waiting_bytes < 2 * WAITING_BYTES_MAX
    assert view.dropped >= 1


def test_what_waited_is_sent_in_order_when_the_socket_takes_it() -> None:
    world = LinkWorld()
    world.until(lambda: world.root is not None)
    links = world.node("n1").peer_links
    assert links is not None
    dialed = links._peers["n2"].dialed
    assert dialed is not None
    links.take_writes()
    dialed.writing_paused = True
    for number in range(3):
        links.send("n2", Kind.REPLICA, bytes((number,)) * 10)
    assert [octets for other, octets in links.take_writes() if other is dialed] == []
    links.dialing.resume(dialed)
    links.send("n2", Kind.REPLICA, b"last")
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
def test_who_does_not_belong_is_refused_and_both_sides_say_why(
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
        assert any(text in record.message and "no link from" in record.message for record in caplog.records)
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
    assert world.machines["n1"].links["n2"].state == ("connecting: n1 dialed itself: its own address is given for n2")


def test_a_second_broker_of_a_name_is_kept_out_while_the_first_is_there() -> None:
    world = LinkWorld(3)
    world.until(world.all_linked)
    world.machines["twin"] = Machine(world, "n3", world.machines["n3"].settings.cluster, CLUSTER)
    world.run(LINK_HEARTBEAT_S * 3_000)
    assert world.is_linked("n1", "n3")
    assert world.machines["twin"].links["n1"].state == "connecting: another broker named n3 is linked to n1"
