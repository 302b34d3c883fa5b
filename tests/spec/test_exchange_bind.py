"""exchange.bind and exchange.unbind: chains, cycles, duplicates, errors."""

from __future__ import annotations

import itertools

import pytest

from tests.support.client import Channel

DEFAULT = "ACCESS_REFUSED - operation not permitted on the default exchange"


def missing(exchange: str) -> str:
    return f"NOT_FOUND - no exchange '{exchange}' in vhost '/'"


def chain(channel: Channel, *names: str) -> None:
    for source, destination in itertools.pairwise(names):
        channel.rpc("exchange.bind", source=source, destination=destination)


def fanouts(channel: Channel, name: str, count: int) -> list[str]:
    return [channel.declare_exchange(f"{name}-{number}", "fanout") for number in range(count)]


def test_messages_pass_from_exchange_to_exchange(channel: Channel, name: str) -> None:
    first, second, third = fanouts(channel, name, 3)
    chain(channel, first, second, third)
    queue = channel.declare_queue()
    channel.bind(queue, third)
    channel.publish("m", "key", first)
    found = channel.get(queue)
    assert found is not None
    assert (found.exchange, found.routing_key) == (first, "key"), "the first exchange's name stays"


def test_the_kind_of_each_exchange_decides(channel: Channel, name: str) -> None:
    source = channel.declare_exchange(name + "-topic", "topic")
    target = channel.declare_exchange(name + "-direct", "direct")
    channel.rpc("exchange.bind", source=source, destination=target, routing_key="a.#")
    queue = channel.declare_queue()
    channel.bind(queue, target, "a.b.c")
    for key in ("a.b.c", "a.b", "b.a.b.c"):
        channel.publish(key, key, source)
    assert channel.drain(queue) == [b"a.b.c"]


def test_a_cycle_delivers_once(channel: Channel, name: str) -> None:
    names = fanouts(channel, name, 3)
    chain(channel, *names, names[0])
    queue = channel.declare_queue()
    for exchange in names:
        channel.bind(queue, exchange)
    channel.publish("m", "", names[1])
    assert channel.drain(queue) == [b"m"]


def test_an_exchange_may_be_bound_to_itself(channel: Channel, name: str) -> None:
    [exchange] = fanouts(channel, name, 1)
    chain(channel, exchange, exchange)
    queue = channel.declare_queue()
    channel.bind(queue, exchange)
    channel.publish("m", "", exchange)
    assert channel.drain(queue) == [b"m"]


def test_two_ways_to_one_queue_deliver_once(channel: Channel, name: str) -> None:
    top, left, right, bottom = fanouts(channel, name, 4)
    chain(channel, top, left, bottom)
    chain(channel, top, right, bottom)
    queue = channel.declare_queue()
    for exchange in (left, right, bottom):
        channel.bind(queue, exchange)
    channel.publish("m", "", top)
    assert channel.drain(queue) == [b"m"]


def test_binding_twice_is_binding_once(channel: Channel, name: str) -> None:
    source, target = fanouts(channel, name, 2)
    chain(channel, source, target)
    chain(channel, source, target)
    queue = channel.declare_queue()
    channel.bind(queue, target)
    channel.rpc("exchange.unbind", source=source, destination=target)
    channel.publish("m", "", source, mandatory=True)
    assert channel.expect("basic.return").body == b"m"


def test_unbind_takes_key_and_arguments_into_account(channel: Channel, name: str) -> None:
    source = channel.declare_exchange(name + "-s", "direct")
    [target] = fanouts(channel, name, 1)
    queue = channel.declare_queue()
    channel.bind(queue, target)
    channel.rpc("exchange.bind", source=source, destination=target, routing_key="k", arguments={"a": 1})
    channel.rpc("exchange.unbind", source=source, destination=target, routing_key="k")
    channel.rpc("exchange.unbind", source=source, destination=target, routing_key="other", arguments={"a": 1})
    channel.publish("still", "k", source)
    channel.rpc("exchange.unbind", source=source, destination=target, routing_key="k", arguments={"a": 1})
    channel.publish("gone", "k", source)
    assert channel.drain(queue) == [b"still"]


def test_no_wait(channel: Channel, name: str) -> None:
    source, target = fanouts(channel, name, 2)
    queue = channel.declare_queue()
    channel.bind(queue, target)
    channel.send("exchange.bind", source=source, destination=target, no_wait=True)
    channel.publish("1", "", source)
    channel.send("exchange.unbind", source=source, destination=target, no_wait=True)
    channel.publish("2", "", source)
    channel.expect_nothing()
    assert channel.drain(queue) == [b"1"]


def test_deleting_an_exchange_in_the_middle_cuts_the_chain(channel: Channel, name: str) -> None:
    first, second, third = fanouts(channel, name, 3)
    chain(channel, first, second, third)
    queue = channel.declare_queue()
    channel.bind(queue, third)
    channel.rpc("exchange.delete", exchange=second)
    channel.publish("m", "", first, mandatory=True)
    assert channel.expect("basic.return").reply_text == "NO_ROUTE"


@pytest.mark.parametrize(
    ("source", "destination", "text"),
    [
        ("no-source", "amq.direct", missing("no-source")),
        ("amq.direct", "no-target", missing("no-target")),
        ("no-source", "no-target", missing("no-source")),
    ],
)
def test_binding_a_missing_exchange_is_refused(channel: Channel, source: str, destination: str, text: str) -> None:
    channel.refused(404, text, "exchange.bind", source=source, destination=destination)


@pytest.mark.parametrize("method", ["exchange.bind", "exchange.unbind"])
@pytest.mark.parametrize(("source", "destination"), [("", "amq.direct"), ("amq.direct", "")])
def test_the_default_exchange_has_no_bindings(channel: Channel, method: str, source: str, destination: str) -> None:
    channel.refused(403, DEFAULT, method, source=source, destination=destination)


def test_unbinding_a_missing_binding_is_no_error(channel: Channel) -> None:
    channel.rpc("exchange.unbind", source="amq.direct", destination="amq.fanout", routing_key="nothing")
    channel.rpc("exchange.unbind", source="no-source", destination="amq.fanout")
    channel.rpc("exchange.unbind", source="amq.direct", destination="no-target")
