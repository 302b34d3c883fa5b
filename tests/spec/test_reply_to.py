"""Direct reply-to: amq.rabbitmq.reply-to."""

from __future__ import annotations

import pytest

from tests.support.client import Channel, Connect

PSEUDO = "amq.rabbitmq.reply-to"


@pytest.fixture
def asking(channel: Channel) -> Channel:
    channel.consume(PSEUDO, "answers", no_ack=True)
    return channel


def request(asking: Channel, serving: Channel) -> str:
    """Sends a request; returns the address that the server receives."""
    queue = serving.declare_queue()
    asking.publish("request", queue, reply_to=PSEUDO, correlation_id="c")
    found = None
    while found is None:
        found = serving.get(queue)
    assert found.properties["correlation_id"] == "c"
    address: str = found.properties["reply_to"]
    return address


def test_request_and_answer(asking: Channel, other: Channel) -> None:
    address = request(asking, other)
    assert address.startswith(PSEUDO + ".")
    other.publish("answer", address, correlation_id="c", headers={"own": 1})
    found = asking.delivery()
    assert (found.consumer_tag, found.exchange, found.body) == ("answers", "", b"answer")
    assert found.properties == {"correlation_id": "c", "headers": {"own": 1}}
    assert found.routing_key == address


def test_many_answers(asking: Channel, other: Channel) -> None:
    address = request(asking, other)
    with other.connection.in_segments("whole"):
        for number in range(100):
            other.publish(str(number), address)
    assert asking.bodies(100) == [str(number).encode() for number in range(100)]


def test_the_server_may_check_whether_the_address_exists(asking: Channel, other: Channel) -> None:
    address = request(asking, other)
    found = other.rpc("queue.declare", queue=address, passive=True)
    assert (found.queue, found.message_count, found.consumer_count) == (address, 0, 1)


def test_an_address_that_is_gone(connect: Connect, other: Channel) -> None:
    leaving = connect().channel()
    leaving.consume(PSEUDO, no_ack=True)
    address = request(leaving, other)
    leaving.connection.close()
    other.publish("answer", address, mandatory=True)
    assert other.expect("basic.return").reply_code == 312
    other.refused(404, f"NOT_FOUND - no queue '{address}' in vhost '/'", "queue.declare", queue=address, passive=True)


@pytest.mark.ours_only
def test_a_live_address_is_a_route(asking: Channel, other: Channel) -> None:
    address = request(asking, other)
    other.rpc("confirm.select")
    other.publish("answer", address, mandatory=True)
    assert other.confirmed().delivery_tag == 1
    assert asking.delivery().body == b"answer"


def test_cancel_ends_the_address(asking: Channel, other: Channel) -> None:
    address = request(asking, other)
    asking.rpc("basic.cancel", consumer_tag="answers")
    asking.consume(PSEUDO, "again", no_ack=True)
    other.publish("answer", address)
    other.expect_nothing()
    asking.expect_nothing()


def test_a_reply_consumer_with_acks_is_refused(channel: Channel) -> None:
    text = "PRECONDITION_FAILED - reply consumer cannot acknowledge"
    channel.refused(406, text, "basic.consume", queue=PSEUDO)


def test_a_second_reply_consumer_in_a_channel_is_refused(asking: Channel) -> None:
    text = "PRECONDITION_FAILED - reply consumer already set"
    asking.refused(406, text, "basic.consume", queue=PSEUDO, no_ack=True)


def test_each_channel_has_its_own(asking: Channel, other: Channel) -> None:
    sibling = asking.connection.channel()
    sibling.consume(PSEUDO, no_ack=True)
    first, second = request(asking, other), request(sibling, other)
    assert first != second
    other.publish("to the second", second)
    other.publish("to the first", first)
    assert asking.delivery().body == b"to the first"
    assert sibling.delivery().body == b"to the second"


def test_requests_need_a_consumer(channel: Channel) -> None:
    channel.publish("request", "nobody", reply_to=PSEUDO)
    text = "PRECONDITION_FAILED - fast reply consumer does not exist"
    channel.expect_close(406, text, "basic.publish")


def test_declaring_it_is_answered(channel: Channel) -> None:
    for passive in (False, True):
        found = channel.rpc("queue.declare", queue=PSEUDO, passive=passive)
        assert (found.queue, found.message_count, found.consumer_count) == (PSEUDO, 0, 1)


def test_another_reply_to_is_left_alone(asking: Channel) -> None:
    queue = asking.declare_queue()
    asking.publish("m", queue, reply_to="my-own-queue")
    found = asking.get(queue)
    assert found is not None
    assert found.properties["reply_to"] == "my-own-queue"
