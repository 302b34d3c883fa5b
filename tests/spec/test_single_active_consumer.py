"""x-single-active-consumer: one consumer receives all messages, the next takes over when it leaves."""

from __future__ import annotations

import pytest

from tests.support.client import Channel, Connect

SINGLE = {"x-single-active-consumer": True}


def test_the_first_consumer_gets_all(channel: Channel) -> None:
    queue = channel.declare_queue(arguments=SINGLE)
    first, second = channel.connection.channel(), channel.connection.channel()
    first.consume(queue, no_ack=True)
    second.consume(queue, no_ack=True)
    for number in range(10):
        channel.publish(str(number), queue)
    assert first.bodies(10) == [str(number).encode() for number in range(10)]
    second.expect_nothing()
    assert channel.counts(queue) == (0, 2)


def test_consumers_take_over_in_the_order_they_came(channel: Channel) -> None:
    queue = channel.declare_queue(arguments=SINGLE)
    readers = [channel.connection.channel() for _ in range(3)]
    for reader in readers:
        reader.consume(queue, "reader", no_ack=True)
    for place, reader in enumerate(readers):
        channel.publish(str(place), queue)
        assert reader.delivery().body == str(place).encode()
        reader.rpc("basic.cancel", consumer_tag="reader")
    assert channel.counts(queue) == (0, 0)


@pytest.mark.parametrize("way", ["cancel", "channel", "connection", "socket"])
def test_the_next_consumer_gets_the_remaining_messages_however_the_active_one_goes(
    connect: Connect, channel: Channel, name: str, way: str
) -> None:
    queue = channel.declare_queue(name, exclusive=False, arguments=SINGLE)
    first, second = connect().channel(), connect().channel()
    first.consume(queue, "first")
    second.consume(queue, "second")
    channel.publish("m", queue)
    first.delivery()
    second.expect_nothing()
    if way == "cancel":
        first.send("basic.reject", delivery_tag=1, requeue=False)
        first.rpc("basic.cancel", consumer_tag="first")
        channel.publish("m", queue)
    elif way == "channel":
        first.rpc("channel.close", reply_code=200)
    elif way == "connection":
        first.connection.close()
    else:
        first.connection.drop()
    found = second.delivery()
    assert (found.body, found.redelivered) == (b"m", way != "cancel")


def test_a_full_prefetch_does_not_pass_messages_to_the_next(channel: Channel) -> None:
    queue = channel.declare_queue(arguments=SINGLE)
    first, second = channel.connection.channel(), channel.connection.channel()
    first.rpc("basic.qos", prefetch_count=1)
    first.consume(queue)
    second.consume(queue)
    for number in range(3):
        channel.publish(str(number), queue)
    first.delivery()
    assert channel.counts(queue) == (2, 2)
    second.expect_nothing()
    first.send("basic.ack", delivery_tag=1)
    assert first.delivery().body == b"1"


def test_no_exclusive_consumers(channel: Channel, name: str) -> None:
    queue = channel.declare_queue(name, arguments=SINGLE)
    text = f"ACCESS_REFUSED - queue '{name}' in vhost '/' in exclusive use"
    channel.refused(403, text, "basic.consume", queue=queue, exclusive=True)
