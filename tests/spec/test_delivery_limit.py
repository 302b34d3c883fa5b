"""x-delivery-limit and x-delivery-count."""

from __future__ import annotations

import pytest

from tests.support.client import Channel
from tests.support.methods import Method


def limited(channel: Channel, name: str, limit: int | None, grave: str = "") -> str:
    arguments: dict[str, object] = {"x-queue-type": "quorum"}
    if limit is not None:
        arguments["x-delivery-limit"] = limit
    if grave:
        arguments |= {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": grave}
    return channel.declare_queue(name, exclusive=False, durable=True, arguments=arguments)


def send_back(channel: Channel, times: int) -> list[Method]:
    """Requeues the message so many times; returns all its deliveries."""
    found = []
    for _ in range(times):
        found.append(channel.delivery())
        channel.send("basic.nack", delivery_tag=found[-1].delivery_tag, requeue=True)
    return found


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_a_message_is_delivered_once_more_than_the_limit(channel: Channel, name: str, limit: int) -> None:
    grave = channel.declare_queue()
    queue = limited(channel, name, limit, grave)
    channel.consume(queue, "reader")
    channel.consume(grave, "grave", no_ack=True)
    channel.publish("m", queue)
    found = send_back(channel, limit + 1)
    assert {method.consumer_tag for method in found} == {"reader"}
    dead = channel.delivery()
    assert dead.consumer_tag == "grave"
    [death] = dead.headers["x-death"]
    assert (death["reason"], death["queue"], death["count"]) == ("delivery_limit", queue, 1)


def test_the_delivery_count_is_in_the_headers_from_the_second_delivery_on(channel: Channel, name: str) -> None:
    queue = limited(channel, name, 10)
    channel.consume(queue)
    channel.publish("m", queue, headers={"own": 1})
    found = send_back(channel, 4)
    assert [method.headers.get("x-delivery-count", 0) for method in found] == [0, 1, 2, 3]
    assert [method.redelivered for method in found] == [False, True, True, True]
    assert all(method.headers["own"] == 1 for method in found)


def test_without_a_dead_letter_exchange_the_message_is_dropped(channel: Channel, name: str) -> None:
    queue = limited(channel, name, 1)
    channel.consume(queue)
    channel.publish("m", queue)
    send_back(channel, 2)
    channel.publish("next", queue)
    assert channel.delivery().body == b"next"


def test_a_channel_that_closes_counts_as_well(channel: Channel, name: str) -> None:
    queue = limited(channel, name, 5)
    channel.publish("m", queue)
    for count in range(3):
        reader = channel.connection.channel()
        reader.consume(queue)
        assert reader.delivery().headers.get("x-delivery-count", 0) == count
        reader.rpc("channel.close", reply_code=200)


@pytest.mark.ours_only
def test_a_quorum_queue_has_a_limit_of_20_by_itself(channel: Channel, name: str) -> None:
    grave = channel.declare_queue()
    queue = limited(channel, name, None, grave)
    channel.consume(queue)
    channel.publish("m", queue)
    send_back(channel, 21)
    channel.consume(grave, "grave", no_ack=True)
    assert channel.delivery().consumer_tag == "grave"


def test_other_queues_have_no_limit(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.consume(queue)
    channel.publish("m", queue)
    found = send_back(channel, 50)
    assert all("x-delivery-count" not in method.headers for method in found)
