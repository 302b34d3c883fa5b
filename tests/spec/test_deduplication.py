"""x-producer and x-sequence: a publish that is repeated under a known number has its effect once.

These headers are our extension; no other broker has them.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.test_confirm import confirmed_tags
from tests.support.client import Channel, Connect

pytestmark = [pytest.mark.ours_only, pytest.mark.proves("R25")]


@pytest.fixture
def queue(channel: Channel, name: str) -> str:
    return channel.declare_queue(name, exclusive=False, durable=True)


@pytest.fixture
def confirming(channel: Channel) -> Channel:
    channel.rpc("confirm.select")
    return channel


def send(channel: Channel, queue: str, *numbers: int, producer: str | None = None, **options: Any) -> None:
    for number in numbers:
        headers = {"x-producer": producer or f"p {queue}", "x-sequence": number}
        channel.publish(str(number), queue, headers=headers, delivery_mode=2, **options)


def test_a_message_that_comes_again_is_confirmed_and_not_enqueued(confirming: Channel, queue: str) -> None:
    send(confirming, queue, 1, 2, 7, 2, 1, 7, 8)
    assert set(confirmed_tags(confirming, 7).values()) == {"basic.ack"}
    assert confirming.drain(queue) == [b"1", b"2", b"7", b"8"]


def test_a_producer_is_known_on_every_connection(confirming: Channel, queue: str, connect: Connect) -> None:
    send(confirming, queue, 1, 2)
    confirmed_tags(confirming, 2)
    again = connect().channel()
    again.rpc("confirm.select")
    send(again, queue, 1, 2, 3)
    assert set(confirmed_tags(again, 3).values()) == {"basic.ack"}
    assert again.drain(queue) == [b"1", b"2", b"3"]


def test_a_lower_number_that_never_came(confirming: Channel, queue: str) -> None:
    send(confirming, queue, 1, 5)
    confirmed_tags(confirming, 2)
    send(confirming, queue, 3)
    text = f"number 3 of producer 'p {queue}' was not published before, but numbers must increase: publish it with a n…"
    confirming.expect_close(406, f"PRECONDITION_FAILED - {text}", "basic.publish")


def test_the_older_connection_may_no_longer(confirming: Channel, queue: str, connect: Connect) -> None:
    send(confirming, queue, 1)
    confirmed_tags(confirming, 1)
    newer = connect().channel()
    newer.rpc("confirm.select")
    send(newer, queue, 2)
    confirmed_tags(newer, 1)
    send(confirming, queue, 3)
    confirming.expect_close(406, "PRECONDITION_FAILED - a newer connection publishes as producer…", "basic.publish")
    send(newer, queue, 3)
    newer.confirmed()
    assert newer.drain(queue) == [b"1", b"2", b"3"]


def test_a_refused_publish_may_come_again(confirming: Channel, name: str) -> None:
    full = {"x-max-length": 1, "x-overflow": "reject-publish"}
    queue = confirming.declare_queue(name, exclusive=False, durable=True, arguments=full)
    send(confirming, queue, 1, 2)
    assert confirmed_tags(confirming, 2) == {1: "basic.ack", 2: "basic.nack"}
    assert confirming.drain(queue) == [b"1"]
    send(confirming, queue, 2)
    assert confirming.confirmed().delivery_tag == 3
    assert confirming.drain(queue) == [b"2"]


def test_a_returned_message_may_come_again(confirming: Channel, name: str) -> None:
    send(confirming, name, 1, mandatory=True)
    assert confirming.expect("basic.return").reply_code == 312
    confirming.confirmed()
    confirming.declare_queue(name, exclusive=False, durable=True)
    send(confirming, name, 1, 2, mandatory=True)
    confirmed = confirming.confirmed()
    while confirmed.delivery_tag < 3:
        confirmed = confirming.confirmed()
    assert confirming.drain(name) == [b"1", b"2"]


def test_a_transaction_that_is_sent_again(channel: Channel, queue: str, connect: Connect) -> None:
    channel.rpc("tx.select")
    send(channel, queue, 1, 2)
    channel.rpc("tx.commit")
    again = connect().channel()
    again.rpc("tx.select")
    send(again, queue, 1, 2, 3)
    again.rpc("tx.commit")
    assert again.drain(queue) == [b"1", b"2", b"3"]


def test_private_queues_get_one_copy(confirming: Channel, name: str) -> None:
    queue = confirming.declare_queue()
    exchange = confirming.declare_exchange(name, "fanout", auto_delete=False)
    confirming.bind(queue, exchange)
    consumer = confirming.connection.channel()
    consumer.consume(queue, no_ack=True)
    for number in (1, 1, 2):
        headers = {"x-producer": f"p {name}", "x-sequence": number}
        confirming.publish(str(number), "", exchange, headers=headers)
    assert consumer.bodies(2) == [b"1", b"2"]


@pytest.mark.parametrize("headers", [{"x-producer": "", "x-sequence": 1}, {"x-producer": "p", "x-sequence": "1"}])
def test_malformed_headers_of_a_producer_are_refused(channel: Channel, queue: str, headers: dict[str, Any]) -> None:
    channel.publish("x", queue, headers=headers)
    channel.expect_close(406, "PRECONDITION_FAILED - invalid x-…", "basic.publish")


def test_one_of_the_two_alone_means_nothing(channel: Channel, queue: str) -> None:
    for _ in range(2):
        channel.publish("a", queue, headers={"x-producer": "p"})
        channel.publish("b", queue, headers={"x-sequence": 1})
    assert channel.drain(queue) == [b"a", b"b"] * 2
