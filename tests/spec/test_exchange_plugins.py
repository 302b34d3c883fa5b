"""The types of exchange that RabbitMQ has as plugins: consistent hash, random, delayed messages."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.support.client import Channel
from tests.support.fields import Typed


def shares(channel: Channel, exchange: str, weights: list[str], count: int, **by: Any) -> list[list[bytes]]:
    """Publishes `count` messages and returns how many each of the queues, bound with these weights, received."""
    queues = [channel.declare_queue() for _ in weights]
    for queue, weight in zip(queues, weights, strict=True):
        channel.bind(queue, exchange, weight)
    with channel.connection.in_segments("whole"):
        for number in range(count):
            properties = {key: value(number) for key, value in by.items()}
            channel.publish(str(number), "same" if by else f"key-{number}", exchange, **properties)
    return [channel.drain(queue) for queue in queues]


def test_consistent_hash_spreads_and_loses_nothing(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "x-consistent-hash")
    found = shares(channel, name, ["10", "10", "10"], 600)
    assert sorted(int(body) for queue in found for body in queue) == list(range(600))
    assert all(len(queue) > 60 for queue in found)


def test_consistent_hash_sends_one_key_to_one_queue(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "x-consistent-hash")
    queues = [channel.declare_queue() for _ in range(4)]
    for queue in queues:
        channel.bind(queue, name, "1")
    for number in range(40):
        channel.publish(f"{number % 4}", f"key-{number % 4}", name)
    found = [channel.drain(queue) for queue in queues]
    assert sum(len(queue) for queue in found) == 40
    for key in (b"0", b"1", b"2", b"3"):
        assert sorted(queue.count(key) for queue in found) == [0, 0, 0, 10]


def test_consistent_hash_weighs(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "x-consistent-hash")
    light, heavy = shares(channel, name, ["1", "20"], 1000)
    assert len(light) < len(heavy) / 4
    assert len(light) + len(heavy) == 1000


@pytest.mark.parametrize(
    ("arguments", "by"),
    [
        ({"hash-header": "h"}, {"headers": lambda number: {"h": f"value {number}"}}),
        ({"hash-property": "message_id"}, {"message_id": lambda number: f"id-{number}"}),
        ({"hash-property": "correlation_id"}, {"correlation_id": lambda number: f"id-{number}"}),
        ({"hash-property": "timestamp"}, {"timestamp": lambda number: 1_000_000 + 7 * number}),
    ],
)
def test_consistent_hash_of_a_header_or_property(
    channel: Channel, name: str, arguments: dict[str, Any], by: dict[str, Any]
) -> None:
    channel.declare_exchange(name, "x-consistent-hash", arguments=arguments)
    found = shares(channel, name, ["10", "10"], 200, **by)
    assert sum(len(queue) for queue in found) == 200
    assert all(found)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("ten", "PRECONDITION_FAILED - The binding key must be an integer: …"),
        ("0", "PRECONDITION_FAILED - The binding key must be greater than 0"),
        ("-1", "PRECONDITION_FAILED - The binding key must be greater than 0"),
    ],
)
def test_consistent_hash_needs_a_weight(channel: Channel, name: str, key: str, text: str) -> None:
    channel.declare_exchange(name, "x-consistent-hash")
    queue = channel.declare_queue()
    channel.refused(406, text, "queue.bind", queue=queue, exchange=name, routing_key=key)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            {"hash-header": "a", "hash-property": "message_id"},
            "PRECONDITION_FAILED - hash-header and hash-property are mutually exclusive",
        ),
        ({"hash-property": "colour"}, "PRECONDITION_FAILED - Unsupported property: colour"),
    ],
)
def test_consistent_hash_arguments(channel: Channel, name: str, arguments: dict[str, Any], text: str) -> None:
    declare = {"exchange": name, "type": "x-consistent-hash", "arguments": arguments}
    channel.refused(406, text, "exchange.declare", **declare)


def test_consistent_hash_moves_little_when_a_queue_comes_and_goes(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "x-consistent-hash")
    one, two, guest = (channel.declare_queue() for _ in range(3))
    channel.bind(one, name, "10")
    channel.bind(two, name, "10")

    def placed() -> set[bytes]:
        for number in range(200):
            channel.publish(str(number), f"key-{number}", name)
        channel.drain(two)
        return set(channel.drain(one))

    before = placed()
    channel.bind(guest, name, "10")
    during = placed()
    assert during <= before or len(during - before) < 40
    assert channel.drain(guest)
    channel.rpc("queue.unbind", queue=guest, exchange=name, routing_key="10")
    assert placed() == before


def test_random_takes_one_queue_each_time(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "x-random")
    found = shares(channel, name, ["a", "b", "c"], 300)
    assert sorted(int(body) for queue in found for body in queue) == list(range(300))
    assert all(len(queue) > 30 for queue in found)


def test_random_without_bindings_routes_nowhere(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "x-random")
    channel.publish("m", "k", name, mandatory=True)
    assert channel.expect("basic.return").reply_code == 312


@pytest.mark.ours_only
class TestDelayed:
    """x-delayed-message: routed like its x-delayed-type after x-delay milliseconds."""

    def declared(self, channel: Channel, name: str, kind: str = "direct") -> str:
        channel.declare_exchange(name, "x-delayed-message", arguments={"x-delayed-type": kind})
        queue = channel.declare_queue()
        channel.bind(queue, name, "k")
        channel.consume(queue, no_ack=True)
        return queue

    def test_messages_come_in_the_order_of_their_delays(self, channel: Channel, name: str) -> None:
        self.declared(channel, name)
        begin = time.monotonic()
        for delay_ms in (300, 100, 200):
            channel.publish(str(delay_ms), "k", name, headers={"x-delay": delay_ms})
        assert channel.bodies(3) == [b"100", b"200", b"300"]
        assert time.monotonic() - begin >= 0.29

    def test_no_delay_means_at_once(self, channel: Channel, name: str) -> None:
        self.declared(channel, name)
        channel.publish("late", "k", name, headers={"x-delay": 60_000})
        for headers in ({}, {"x-delay": 0}, {"x-delay": Typed("l", 0)}):
            channel.publish("now", "k", name, headers=headers)
        assert channel.bodies(3) == [b"now"] * 3
        channel.expect_nothing()

    def test_the_header_arrives_with_its_sign_turned(self, channel: Channel, name: str) -> None:
        self.declared(channel, name)
        channel.publish("m", "k", name, headers={"x-delay": 50, "other": "kept"})
        assert channel.delivery().headers == {"x-delay": -50, "other": "kept"}

    def test_the_inner_type_routes(self, channel: Channel, name: str) -> None:
        channel.declare_exchange(name, "x-delayed-message", arguments={"x-delayed-type": "topic"})
        queue = channel.declare_queue()
        channel.bind(queue, name, "a.*")
        channel.consume(queue, no_ack=True)
        channel.publish("no", "b.c", name, headers={"x-delay": 20})
        channel.publish("yes", "a.c", name, headers={"x-delay": 40})
        found = channel.delivery()
        assert (found.body, found.exchange, found.routing_key) == (b"yes", name, "a.c")

    def test_confirms_do_not_wait_for_the_delay(self, channel: Channel, name: str) -> None:
        self.declared(channel, name)
        channel.rpc("confirm.select")
        channel.publish_confirmed("m", "k", name, headers={"x-delay": 60_000})
        channel.expect_nothing()

    @pytest.mark.parametrize("arguments", [{}, {"x-delayed-type": "nonsense"}, {"x-delayed-type": 5}])
    def test_the_inner_type_has_to_be_one(self, channel: Channel, name: str, arguments: dict[str, Any]) -> None:
        declare = {"exchange": name, "type": "x-delayed-message", "arguments": arguments}
        channel.refused(406, "PRECONDITION_FAILED - …", "exchange.declare", **declare)
