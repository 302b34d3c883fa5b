"""Messages that return from a lease: their queue, and the reason if they die."""

from __future__ import annotations

from typing import Any

import pytest

from pandomq import methods
from pandomq.broker.log.revival import Revival
from pandomq.properties import Properties
from tests.unit.broker.conversation import Peer, World
from tests.unit.broker.lease_scene import PERSISTENT, TIMEOUT_MS, Lessee, bodies, drained, filled, taken_over

DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def with_dead(count: int, **arguments: Any) -> tuple[World, Peer]:
    world, peer = filled(count, arguments={**DEAD, **arguments})
    peer.declare("dead", durable=True)
    return world, peer


def died(peer: Peer) -> list[tuple[bytes, str]]:
    """Bodies of the dead, and what they died of."""
    found = []
    while (got := peer.get("dead")) is not None:
        assert got.properties is not None and got.properties.headers is not None
        found.append((got.body, got.properties.headers["x-death"][0]["reason"]))
    return found


def test_leased_messages_expire_only_when_they_are_back() -> None:
    world, peer = with_dead(4, **{"x-message-ttl": 5_000})
    lessee = Lessee(world)
    lessee.lease(2)
    world.pass_time(6_000)
    assert died(peer) == [(b"m2", "expired"), (b"m3", "expired")]
    assert lessee.read() == bodies(0, 2), "nothing expires while it is leased"
    lessee.end()
    assert drained(peer) == []
    assert died(peer) == [(b"m0", "expired"), (b"m1", "expired")]


def test_a_message_keeps_the_rest_of_its_time_to_live() -> None:
    for takeover in (False, True):
        world, peer = with_dead(2, **{"x-message-ttl": 5_000})
        lessee = Lessee(world)
        lessee.lease(2)
        world.pass_time(3_000)
        lessee.end()
        peer.leave()
        after = taken_over(world) if takeover else world
        after.pass_time(1_999)
        assert after.peer().counts() == (2, 0)
        after.pass_time(1)
        assert after.peer().counts() == (0, 0)


def test_a_time_of_its_own_is_known_too() -> None:
    world, peer = filled(0)
    peer.publish("", "q", b"soon", Properties(delivery_mode=2, expiration="5000"))
    peer.publish("", "q", b"later", PERSISTENT)
    lessee = Lessee(world)
    lessee.lease(2)
    world.pass_time(TIMEOUT_MS)
    assert not lessee.is_there
    assert drained(peer) == [(b"later", True)]


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_each_return_counts_towards_the_delivery_limit(limit: int) -> None:
    world, peer = with_dead(2, **{"x-queue-type": "quorum", "x-delivery-limit": limit})
    lessee = Lessee(world)
    for _ in range(limit):
        lessee.lease(1)
        lessee.end()
        assert peer.counts() == (2, 0) and died(peer) == []
    lessee.lease(1)
    lessee.end()
    assert died(peer) == [(b"m0", "delivery_limit")]
    got = peer.get()
    assert got is not None and got.body == b"m1"


def test_the_delivery_count_is_sent_and_known_to_the_next_root() -> None:
    world, peer = filled(1, arguments={"x-queue-type": "quorum"})
    lessee = Lessee(world)
    lessee.lease(1)
    lessee.end()
    lessee.lease(1)
    peer.leave()
    other = taken_over(world)
    Lessee(other).end()
    got = other.peer().get()
    assert got is not None and got.properties is not None and got.properties.headers is not None
    assert got.properties.headers["x-delivery-count"] == 2
    assert isinstance(got.method, methods.BasicGetOk) and got.method.redelivered


def test_a_queue_that_is_full_when_they_come_back_drops_its_head() -> None:
    world, peer = with_dead(3, **{"x-max-length": 3})
    lessee = Lessee(world)
    lessee.lease(2)
    for number in (3, 4):
        peer.publish("", "q", b"m%d" % number, PERSISTENT)
    assert peer.counts() == (3, 0), "what is leased takes no room"
    lessee.end()
    assert died(peer) == [(b"m0", "maxlen"), (b"m1", "maxlen")]
    assert [body for body, _ in drained(peer)] == bodies(2, 5)


def test_a_full_queue_that_rejects_publishes_takes_back_leased_messages() -> None:
    world, peer = filled(3, arguments={"x-max-length": 3, "x-overflow": "reject-publish"})
    lessee = Lessee(world)
    lessee.lease(2)
    for number in (3, 4):
        peer.publish("", "q", b"m%d" % number, PERSISTENT)
    lessee.end()
    assert [body for body, _ in drained(peer)] == bodies(0, 5)


def test_priorities_are_leased_and_come_back_in_their_order() -> None:
    world, peer = filled(0, arguments={"x-max-priority": 5})
    for number, priority in enumerate((1, 5, 1, 3, 5)):
        peer.publish("", "q", b"m%d" % number, Properties(delivery_mode=2, priority=priority))
    lessee = Lessee(world)
    lessee.lease(4)
    assert lessee.read() == [b"m1", b"m4", b"m3", b"m0"]
    lessee.end()
    assert [body for body, _ in drained(peer)] == [b"m1", b"m4", b"m3", b"m0", b"m2"]


def test_a_leased_message_that_was_replaced_meanwhile_does_not_come_back() -> None:
    world, peer = filled(0, arguments={"x-last-value-key": "key"})

    def publish(key: str, body: bytes) -> None:
        peer.publish("", "q", body, Properties(delivery_mode=2, headers={"key": key}))

    publish("a", b"a1")
    publish("b", b"b1")
    lessee = Lessee(world)
    lessee.lease(2)
    publish("a", b"a2")
    lessee.end()
    assert [body for body, _ in drained(peer)] == [b"b1", b"a2"]


def test_headers_and_routing_are_as_they_were() -> None:
    world, peer = filled(0)
    peer.call(methods.ExchangeDeclare("x", "topic"), expect=methods.ExchangeDeclareOk)
    peer.call(methods.QueueBind("q", "x", "a.#"), expect=methods.QueueBindOk)
    properties = Properties(delivery_mode=2, headers={"n": 1}, content_type="text/plain", message_id="7")
    peer.publish("x", "a.b", b"body", properties)
    lessee = Lessee(world)
    lessee.lease()
    lessee.end()
    got = peer.get()
    assert got is not None and isinstance(got.method, methods.BasicGetOk)
    assert (got.method.exchange, got.method.routing_key, got.properties, got.body) == ("x", "a.b", properties, b"body")


def test_a_lone_broker_that_restarts_without_a_durable_queue_forgets_its_lease() -> None:
    world = World()
    peer = world.peer()
    peer.declare("q")
    peer.publish("", "q", b"m0", PERSISTENT)
    lessee = Lessee(world)
    view = lessee.lease()
    peer.leave()
    other = world.replayed()
    Revival(other.broker, lambda place: place).finish(world.now_ms)
    other.run([])
    assert not Lessee(other).is_there and other.broker.streams.find("/", view.stream) is None


def test_many_come_back_chunk_by_chunk() -> None:
    """More than a batch may give back at once."""
    world, peer = filled(0)
    body = bytes(300_000)
    for number in range(60):
        peer.publish("", "q", b"%d " % number + body, PERSISTENT)
    lessee = Lessee(world)
    while lessee.lease(100, bytes_max=2**30).more:
        pass
    assert peer.counts() == (0, 0)
    entries = len(world.entries)
    lessee.end()
    assert not lessee.is_there
    sizes = [len(entry) for entry in world.entries[entries:]]
    assert len(sizes) > 3 and max(sizes) < 10_000_000
    assert [int(got.split(b" ")[0]) for got, _ in drained(peer)] == list(range(60))
