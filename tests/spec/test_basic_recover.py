"""basic.recover and basic.recover-async."""

from __future__ import annotations

import pytest

from tests.support.client import Channel


def test_recover_brings_back_all_that_was_not_acked(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.consume(queue)
    for number in range(4):
        channel.publish(str(number), queue)
    channel.bodies(4)
    channel.send("basic.ack", delivery_tag=2)
    channel.send("basic.recover", requeue=True)
    received = [channel.receive() for _ in range(4)]
    assert [method.name for method in received].count("basic.recover-ok") == 1
    again = [method for method in received if method.name == "basic.deliver"]
    assert [(method.body, method.redelivered) for method in again] == [(b"0", True), (b"2", True), (b"3", True)]
    assert [method.delivery_tag for method in again] == [5, 6, 7]


def test_recover_of_nothing_is_answered(channel: Channel) -> None:
    channel.rpc("basic.recover", requeue=True)


def test_recover_gives_messages_to_any_consumer(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.publish("m", queue)
    assert channel.get(queue, no_ack=False) is not None
    channel.rpc("basic.recover", requeue=True)
    sibling = channel.connection.channel()
    again = sibling.get(queue)
    assert again is not None
    assert (again.body, again.redelivered) == (b"m", True)


def test_recover_async_is_not_answered(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.publish("m", queue)
    assert channel.get(queue, no_ack=False) is not None
    channel.send("basic.recover-async", requeue=True)
    channel.expect_nothing()
    assert channel.drain(queue) == [b"m"]


def test_recovered_tags_are_unknown(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.publish("m", queue)
    assert channel.get(queue, no_ack=False) is not None
    channel.rpc("basic.recover", requeue=True)
    channel.refused(406, "PRECONDITION_FAILED - unknown delivery tag 1", "basic.ack", delivery_tag=1)


@pytest.mark.parametrize("method", ["basic.recover", "basic.recover-async"])
def test_recover_to_the_same_consumer_is_not_implemented(channel: Channel, method: str) -> None:
    channel.refused_hard(540, "NOT_IMPLEMENTED - requeue=false", method, requeue=False)
