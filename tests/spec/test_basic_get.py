"""basic.get."""

from __future__ import annotations

import pytest

from tests.support.client import Channel


def test_empty(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.send("basic.get", queue=queue)
    assert channel.expect("basic.get-empty").cluster_id == ""


def test_get_ok_has_the_number_of_messages_left(channel: Channel) -> None:
    queue = channel.declare_queue()
    for number in range(3):
        channel.publish(str(number), queue, message_id=str(number))
    for number in range(3):
        found = channel.get(queue, no_ack=False)
        assert found is not None
        assert (found.delivery_tag, found.message_count, found.redelivered) == (number + 1, 2 - number, False)
        assert (found.exchange, found.routing_key) == ("", queue)
        assert (found.body, found.properties) == (str(number).encode(), {"message_id": str(number)})
    assert channel.get(queue) is None


@pytest.mark.parametrize("no_ack", [False, True])
def test_a_close_gives_back_messages_unless_no_ack_was_set(channel: Channel, no_ack: bool) -> None:
    queue = channel.declare_queue()
    reader = channel.connection.channel()
    channel.publish("m", queue)
    channel.expect_nothing()
    assert reader.get(queue, no_ack=no_ack) is not None
    reader.rpc("channel.close", reply_code=200)
    assert channel.drain(queue) == ([] if no_ack else [b"m"])


def test_a_queue_that_is_missing(channel: Channel, name: str) -> None:
    channel.refused(404, f"NOT_FOUND - no queue '{name}' in vhost '/'", "basic.get", queue=name)


@pytest.mark.parametrize("how", ["whole", "bytewise"])
def test_many_in_one_batch(channel: Channel, how: str) -> None:
    queue = channel.declare_queue()
    with channel.connection.in_segments(how):
        for number in range(20):
            channel.publish(str(number), queue)
        for _ in range(21):
            channel.send("basic.get", queue=queue, no_ack=True)
    for number in range(20):
        assert channel.expect("basic.get-ok").body == str(number).encode()
    channel.expect("basic.get-empty")


def test_prefetch_does_not_limit_it(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.rpc("basic.qos", prefetch_count=1)
    for number in range(3):
        channel.publish(str(number), queue)
    for number in range(3):
        found = channel.get(queue, no_ack=False)
        assert found is not None
        assert found.body == str(number).encode()


def test_large_bodies(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.publish(b"z" * 500_000, queue)
    found = channel.get(queue)
    assert found is not None
    assert found.body == b"z" * 500_000
