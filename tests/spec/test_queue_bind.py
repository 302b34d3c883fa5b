"""queue.bind and queue.unbind."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.client import Channel

DEFAULT = "ACCESS_REFUSED - operation not permitted on the default exchange"


def test_bind_and_unbind(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct")
    queue = channel.declare_queue()
    channel.publish("before", "k", name)
    channel.rpc("queue.bind", queue=queue, exchange=name, routing_key="k")
    channel.publish("during", "k", name)
    channel.rpc("queue.unbind", queue=queue, exchange=name, routing_key="k")
    channel.publish("after", "k", name)
    assert channel.drain(queue) == [b"during"]


@pytest.mark.parametrize("how", ["whole", "bytewise"])
def test_bindings_take_effect_between_the_publishes_of_a_batch(channel: Channel, name: str, how: str) -> None:
    channel.declare_exchange(name, "direct")
    queue = channel.declare_queue()
    with channel.connection.in_segments(how):
        channel.publish("before", "k", name)
        channel.send("queue.bind", queue=queue, exchange=name, routing_key="k", no_wait=True)
        channel.publish("during", "k", name)
        channel.send("queue.unbind", queue=queue, exchange=name, routing_key="k")
        channel.publish("after", "k", name)
    channel.expect("queue.unbind-ok")
    assert channel.drain(queue) == [b"during"]


def test_no_wait(channel: Channel, name: str) -> None:
    queue = channel.declare_queue()
    channel.send("queue.bind", queue=queue, exchange="amq.direct", routing_key=name, no_wait=True)
    channel.expect_nothing()
    channel.publish("m", name, "amq.direct")
    assert channel.drain(queue) == [b"m"]


def test_binding_twice_is_binding_once(channel: Channel, name: str) -> None:
    queue = channel.declare_queue()
    channel.bind(queue, "amq.direct", name)
    channel.bind(queue, "amq.direct", name)
    channel.publish("m", name, "amq.direct")
    assert channel.drain(queue) == [b"m"]
    channel.rpc("queue.unbind", queue=queue, exchange="amq.direct", routing_key=name)
    channel.publish("m", name, "amq.direct", mandatory=True)
    channel.expect("basic.return")


def test_bindings_differ_by_their_arguments(channel: Channel, name: str) -> None:
    queue = channel.declare_queue()
    channel.bind(queue, "amq.direct", name)
    channel.bind(queue, "amq.direct", name, colour="red")
    channel.publish("1", name, "amq.direct")
    channel.rpc("queue.unbind", queue=queue, exchange="amq.direct", routing_key=name)
    channel.publish("2", name, "amq.direct")
    channel.rpc("queue.unbind", queue=queue, exchange="amq.direct", routing_key=name, arguments={"colour": "blue"})
    channel.publish("3", name, "amq.direct")
    channel.rpc("queue.unbind", queue=queue, exchange="amq.direct", routing_key=name, arguments={"colour": "red"})
    channel.publish("4", name, "amq.direct")
    assert channel.drain(queue) == [b"1", b"2", b"3"]


def test_an_empty_queue_and_key_stand_for_the_last_queue_and_its_name(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.rpc("queue.bind", queue="", exchange="amq.direct", routing_key="")
    channel.publish("m", queue, "amq.direct")
    assert channel.drain(queue) == [b"m"]


def test_an_empty_key_is_a_key_when_the_queue_is_named(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct")
    queue = channel.declare_queue()
    channel.bind(queue, name, "")
    channel.publish("named", queue, name)
    channel.publish("empty", "", name)
    assert channel.drain(queue) == [b"empty"]


@pytest.mark.parametrize("no_wait", [False, True])
def test_binding_a_queue_that_is_missing(channel: Channel, name: str, no_wait: bool) -> None:
    text = f"NOT_FOUND - no queue '{name}' in vhost '/'"
    channel.refused(404, text, "queue.bind", queue=name, exchange="amq.direct", no_wait=no_wait)


def test_binding_to_an_exchange_that_is_missing(channel: Channel, name: str) -> None:
    queue = channel.declare_queue()
    text = f"NOT_FOUND - no exchange '{name}' in vhost '/'"
    channel.refused(404, text, "queue.bind", queue=queue, exchange=name)


def test_if_both_are_missing_the_exchange_is_named(channel: Channel, name: str) -> None:
    text = f"NOT_FOUND - no exchange '{name}' in vhost '/'"
    channel.refused(404, text, "queue.bind", queue=name, exchange=name)


@pytest.mark.parametrize("method", ["queue.bind", "queue.unbind"])
def test_the_default_exchange_has_no_bindings_of_ones_own(channel: Channel, method: str) -> None:
    queue = channel.declare_queue()
    channel.refused(403, DEFAULT, method, queue=queue, exchange="", routing_key="k")


@pytest.mark.parametrize(
    "arguments",
    [
        {"exchange": "amq.direct", "routing_key": "never bound"},
        {"exchange": "no-such-exchange"},
        {"queue": "no-such-queue", "exchange": "amq.direct"},
    ],
)
def test_unbinding_a_missing_binding_is_no_error(channel: Channel, arguments: dict[str, Any]) -> None:
    queue = channel.declare_queue()
    channel.rpc("queue.unbind", **({"queue": queue} | arguments))


def test_many_bindings_of_one_queue(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct")
    queue = channel.declare_queue()
    with channel.connection.in_segments("whole"):
        for number in range(500):
            channel.send("queue.bind", queue=queue, exchange=name, routing_key=f"k{number}", no_wait=True)
        for number in range(0, 500, 2):
            channel.send("queue.unbind", queue=queue, exchange=name, routing_key=f"k{number}")
    for _ in range(250):
        channel.expect("queue.unbind-ok")
    with channel.connection.in_segments("whole"):
        for number in range(500):
            channel.publish(str(number), f"k{number}", name)
    assert [int(body) for body in channel.drain(queue)] == list(range(1, 500, 2))


def test_bindings_go_with_the_queue(channel: Channel, name: str) -> None:
    channel.declare_queue(name)
    channel.bind(name, "amq.direct", name)
    channel.rpc("queue.delete", queue=name)
    channel.declare_queue(name)
    channel.publish("m", name, "amq.direct", mandatory=True)
    assert channel.expect("basic.return").reply_code == 312
