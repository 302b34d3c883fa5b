"""x-expires: an unused queue is deleted."""

from __future__ import annotations

import time

from tests.support.client import Channel, ClosedByBrokerError, Connection


def exists(connection: Connection, queue: str) -> bool:
    """A passive declare counts as use on RabbitMQ only if it declares; here it is done on a channel of its own."""
    probe = connection.channel()
    try:
        probe.rpc("queue.delete", queue=queue, if_unused=True, if_empty=True)
    except ClosedByBrokerError:
        probe.send("channel.close-ok")
        return True
    return False


def wait_until_gone(channel: Channel, queue: str) -> None:
    # The message in the queue makes the conditional delete fail.
    deadline = time.monotonic() + 10
    while exists(channel.connection, queue):
        assert time.monotonic() < deadline, "the queue does not expire"
        time.sleep(0.02)


def test_an_unused_queue_goes_away_with_its_messages(channel: Channel, name: str) -> None:
    begin = time.monotonic()
    channel.declare_queue(name, exclusive=False, arguments={"x-expires": 300})
    channel.publish("m", name)
    wait_until_gone(channel, name)
    assert time.monotonic() - begin >= 0.25
    channel.publish("m", name, mandatory=True)
    assert channel.expect("basic.return").reply_code == 312


def test_a_consumer_keeps_it(channel: Channel, name: str) -> None:
    channel.declare_queue(name, exclusive=False, arguments={"x-expires": 300})
    channel.publish("m", name)
    reader = channel.connection.channel()
    reader.rpc("basic.qos", prefetch_count=1)
    tag = reader.consume(name)
    reader.delivery()
    channel.publish("n", name)
    time.sleep(0.8)
    assert exists(channel.connection, name)
    reader.rpc("basic.cancel", consumer_tag=tag)
    wait_until_gone(channel, name)


def test_basic_get_and_declare_count_as_use(channel: Channel, name: str) -> None:
    channel.declare_queue(name, exclusive=False, arguments={"x-expires": 600})
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        channel.get(name)
        time.sleep(0.1)
        channel.declare_queue(name, exclusive=False, arguments={"x-expires": 600})
        time.sleep(0.1)
    channel.publish("m", name)
    assert exists(channel.connection, name)
    wait_until_gone(channel, name)


def test_publishes_do_not_count_as_use(channel: Channel, name: str) -> None:
    channel.declare_queue(name, exclusive=False, arguments={"x-expires": 300})
    deadline = time.monotonic() + 10
    channel.publish("m", name)
    while exists(channel.connection, name):
        channel.publish("m", name)
        assert time.monotonic() < deadline
        time.sleep(0.05)
