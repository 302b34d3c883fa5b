"""alternate-exchange: the route of messages that an exchange cannot route."""

from __future__ import annotations

import pytest

from tests.support.client import Channel


def with_alternate(channel: Channel, exchange: str, alternate: str, kind: str = "direct") -> str:
    return channel.declare_exchange(exchange, kind, arguments={"alternate-exchange": alternate})


@pytest.fixture
def spare(channel: Channel, name: str) -> tuple[str, str]:
    """A fanout exchange and the queue behind it."""
    exchange = channel.declare_exchange(name + "-spare", "fanout")
    queue = channel.declare_queue()
    channel.bind(queue, exchange)
    return exchange, queue


def test_unroutable_messages_go_to_the_alternate_exchange(channel: Channel, name: str, spare: tuple[str, str]) -> None:
    exchange = with_alternate(channel, name, spare[0])
    queue = channel.declare_queue()
    channel.bind(queue, exchange, "known")
    with channel.settling():
        channel.publish("1", "known", exchange)
        channel.publish("2", "unknown", exchange, mandatory=True)
    channel.expect_nothing()
    found = channel.get(spare[1])
    assert found is not None
    assert (found.body, found.exchange, found.routing_key) == (b"2", exchange, "unknown")
    assert channel.drain(queue) == [b"1"]
    assert channel.counts(spare[1]) == (0, 0)


def test_chains(channel: Channel, name: str, spare: tuple[str, str]) -> None:
    last = with_alternate(channel, name + "-2", spare[0])
    middle = with_alternate(channel, name + "-1", last, "topic")
    first = with_alternate(channel, name, middle)
    with channel.settling():
        channel.publish("m", "k", first)
    assert channel.drain(spare[1]) == [b"m"]


def test_circles_end(channel: Channel, name: str) -> None:
    one = with_alternate(channel, name + "-1", name + "-2")
    with_alternate(channel, name + "-2", one)
    channel.publish("m", "k", one, mandatory=True)
    assert channel.expect("basic.return").reply_code == 312


def test_an_alternate_that_is_missing(channel: Channel, name: str) -> None:
    exchange = with_alternate(channel, name, name + "-missing")
    channel.publish("m", "k", exchange, mandatory=True)
    assert channel.expect("basic.return").reply_code == 312


def test_an_alternate_that_is_declared_later(channel: Channel, name: str) -> None:
    exchange = with_alternate(channel, name, name + "-later")
    channel.publish("lost", "k", exchange)
    later = channel.declare_exchange(name + "-later", "fanout")
    queue = channel.declare_queue()
    channel.bind(queue, later)
    with channel.settling():
        channel.publish("m", "k", exchange)
    assert channel.drain(queue) == [b"m"]


def test_an_alternate_without_a_route_either_means_a_return(channel: Channel, name: str) -> None:
    empty = channel.declare_exchange(name + "-empty", "direct")
    exchange = with_alternate(channel, name, empty)
    channel.publish("m", "k", exchange, mandatory=True)
    assert channel.expect("basic.return").reply_code == 312


def test_a_queue_unbound_makes_the_alternate_take_over(channel: Channel, name: str, spare: tuple[str, str]) -> None:
    exchange = with_alternate(channel, name, spare[0])
    queue = channel.declare_queue()
    channel.bind(queue, exchange, "k")
    channel.publish("1", "k", exchange)
    channel.rpc("queue.unbind", queue=queue, exchange=exchange, routing_key="k")
    with channel.settling():
        channel.publish("2", "k", exchange)
    assert [channel.drain(queue), channel.drain(spare[1])] == [[b"1"], [b"2"]]


def test_a_binding_to_an_exchange_without_a_route_counts_as_a_route_of_the_first(
    channel: Channel, name: str, spare: tuple[str, str]
) -> None:
    exchange = with_alternate(channel, name, spare[0])
    empty = channel.declare_exchange(name + "-empty", "fanout")
    channel.rpc("exchange.bind", source=exchange, destination=empty, routing_key="k")
    with channel.settling():
        channel.publish("m", "k", exchange)
    channel.expect_nothing()
    assert channel.counts(spare[1]) == (0, 0)
