"""Auto-delete: queues are deleted with their last consumer, exchanges with their last binding."""

from __future__ import annotations

import time

import pytest

from tests.support.client import Channel, ClosedByBrokerError, Connect


def exists(channel: Channel, kind: str, name: str) -> bool:
    probe = channel.connection.channel()
    try:
        probe.rpc(f"{kind}.declare", passive=True, **{kind: name})
    except ClosedByBrokerError as closed:
        if closed.method.reply_code != 404:
            raise
        probe.send("channel.close-ok")
        return False
    probe.rpc("channel.close", reply_code=200)
    return True


def wait_until_gone(channel: Channel, kind: str, name: str) -> None:
    deadline = time.monotonic() + 10
    while exists(channel, kind, name):
        assert time.monotonic() < deadline, f"{kind} {name} stays"


def test_a_queue_without_a_consumer_yet_stays(channel: Channel, name: str) -> None:
    channel.declare_queue(name, exclusive=False, auto_delete=True)
    channel.publish("m", name)
    assert channel.drain(name) == [b"m"]
    assert exists(channel, "queue", name)


@pytest.mark.parametrize("way", ["cancel", "channel", "connection", "socket"])
def test_a_queue_goes_with_its_last_consumer(connect: Connect, channel: Channel, name: str, way: str) -> None:
    channel.declare_queue(name, exclusive=False, auto_delete=True)
    first, last = connect().channel(), connect().channel()
    first.consume(name, "first")
    last.consume(name, "last")
    first.rpc("basic.cancel", consumer_tag="first")
    assert exists(channel, "queue", name)
    if way == "cancel":
        last.rpc("basic.cancel", consumer_tag="last")
    elif way == "channel":
        last.rpc("channel.close", reply_code=200)
    elif way == "connection":
        last.connection.close()
    else:
        last.connection.drop()
    wait_until_gone(channel, "queue", name)


def test_messages_go_with_the_queue(channel: Channel, name: str) -> None:
    channel.declare_queue(name, exclusive=False, auto_delete=True)
    reader = channel.connection.channel()
    reader.consume(name, "t")
    channel.publish("m", name)
    reader.delivery()
    reader.rpc("basic.cancel", consumer_tag="t")
    wait_until_gone(channel, "queue", name)
    reader.send("basic.ack", delivery_tag=1)
    reader.expect_nothing()
    channel.declare_queue(name, exclusive=False, auto_delete=True)
    assert channel.drain(name) == []


def test_an_exchange_without_a_binding_yet_stays(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct", auto_delete=True)
    channel.publish("m", "k", name)
    assert exists(channel, "exchange", name)


@pytest.mark.parametrize("way", ["unbind", "delete"])
def test_an_exchange_goes_with_its_last_queue(channel: Channel, name: str, way: str) -> None:
    channel.declare_exchange(name, "direct", auto_delete=True)
    queue = channel.declare_queue()
    channel.bind(queue, name, "a")
    channel.bind(queue, name, "b")
    channel.rpc("queue.unbind", queue=queue, exchange=name, routing_key="a")
    assert exists(channel, "exchange", name)
    if way == "unbind":
        channel.rpc("queue.unbind", queue=queue, exchange=name, routing_key="b")
    else:
        channel.rpc("queue.delete", queue=queue)
    wait_until_gone(channel, "exchange", name)


def test_an_exchange_goes_with_its_last_exchange(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct", auto_delete=True)
    target = channel.declare_exchange(name + "-target", "direct")
    channel.rpc("exchange.bind", source=name, destination=target)
    channel.rpc("exchange.delete", exchange=target)
    wait_until_gone(channel, "exchange", name)


def test_a_chain_of_them_goes_together(channel: Channel, name: str) -> None:
    names = [channel.declare_exchange(f"{name}-{number}", "fanout", auto_delete=True) for number in range(3)]
    queue = channel.declare_queue()
    channel.rpc("exchange.bind", source=names[0], destination=names[1])
    channel.rpc("exchange.bind", source=names[1], destination=names[2])
    channel.bind(queue, names[2])
    channel.rpc("queue.delete", queue=queue)
    for exchange in names:
        wait_until_gone(channel, "exchange", exchange)


def test_being_a_destination_keeps_no_exchange(channel: Channel, name: str) -> None:
    channel.declare_exchange(name, "direct", auto_delete=True)
    channel.rpc("exchange.bind", source="amq.direct", destination=name, routing_key=name)
    channel.rpc("exchange.unbind", source="amq.direct", destination=name, routing_key=name)
    assert exists(channel, "exchange", name)
