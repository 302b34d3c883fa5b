"""basic.ack, basic.nack, basic.reject: single, multiple, requeued, unknown and twice."""

from __future__ import annotations

import pytest

from tests.support.client import Channel

ANSWERS = ["basic.ack", "basic.nack", "basic.reject"]


def reading(channel: Channel, count: int) -> str:
    """A queue whose messages have all been delivered to the channel, with the tags 1 to count."""
    queue = channel.declare_queue()
    channel.consume(queue, "reader")
    with channel.connection.in_segments("whole"):
        for number in range(1, count + 1):
            channel.publish(str(number), queue)
    assert channel.bodies(count) == [str(number).encode() for number in range(1, count + 1)]
    return queue


def returned(channel: Channel, queue: str) -> list[int]:
    """Returns the messages that are requeued when the channel closes; its connection stays."""
    channel.rpc("channel.close", reply_code=200)
    return [int(body) for body in channel.connection.channel().drain(queue)]


@pytest.mark.parametrize("answer", ANSWERS)
def test_one_at_a_time_in_any_order(channel: Channel, answer: str) -> None:
    queue = reading(channel, 5)
    for tag in (4, 1, 5):
        channel.send(answer, delivery_tag=tag)
    channel.expect_nothing()
    assert returned(channel, queue) == [2, 3]


@pytest.mark.parametrize("answer", ["basic.ack", "basic.nack"])
def test_multiple_takes_all_up_to_the_tag(channel: Channel, answer: str) -> None:
    queue = reading(channel, 6)
    channel.send(answer, delivery_tag=2)
    channel.send(answer, delivery_tag=4, multiple=True)
    channel.expect_nothing()
    assert returned(channel, queue) == [5, 6]


@pytest.mark.parametrize("answer", ["basic.ack", "basic.nack"])
def test_multiple_with_tag_0_takes_all(channel: Channel, answer: str) -> None:
    queue = reading(channel, 5)
    channel.send(answer, delivery_tag=0, multiple=True)
    channel.send(answer, delivery_tag=0, multiple=True)
    channel.expect_nothing()
    assert returned(channel, queue) == []


@pytest.mark.parametrize("how", ["whole", "bytewise"])
def test_acks_of_many_queues_in_one_batch(channel: Channel, how: str) -> None:
    queues = [reading_as(channel, f"reader {number}") for number in range(4)]
    for number in range(20):
        channel.publish(str(number), queues[number % 4])
        channel.delivery()
    with channel.connection.in_segments(how):
        channel.send("basic.ack", delivery_tag=5, multiple=True)
        channel.send("basic.nack", delivery_tag=7, requeue=False)
        channel.send("basic.reject", delivery_tag=9, requeue=False)
        channel.send("basic.ack", delivery_tag=20)
    channel.rpc("channel.close", reply_code=200)
    again = channel.connection.channel()
    found = sorted(int(body) + 1 for queue in queues for body in again.drain(queue))
    assert found == sorted(set(range(6, 20)) - {7, 9})


def reading_as(channel: Channel, tag: str) -> str:
    queue = channel.declare_queue()
    channel.consume(queue, tag)
    return queue


@pytest.mark.parametrize("answer", ["basic.nack", "basic.reject"])
def test_requeue_delivers_again_and_marks_the_message_redelivered(channel: Channel, answer: str) -> None:
    reading(channel, 1)
    channel.send(answer, delivery_tag=1, requeue=True)
    again = channel.delivery()
    assert (again.body, again.delivery_tag, again.redelivered) == (b"1", 2, True)


@pytest.mark.parametrize("answer", ["basic.nack", "basic.reject"])
def test_requeue_keeps_the_place(channel: Channel, answer: str) -> None:
    queue = channel.declare_queue()
    for number in range(5):
        channel.publish(str(number), queue)
    for _ in range(3):
        channel.get(queue, no_ack=False)
    for tag in (3, 1):
        channel.send(answer, delivery_tag=tag, requeue=True)
    found = [channel.get(queue) for _ in range(4)]
    assert [(method.body, method.redelivered) for method in found if method] == [
        (b"0", True),
        (b"2", True),
        (b"3", False),
        (b"4", False),
    ]


def test_nack_multiple_with_requeue_keeps_the_order(channel: Channel) -> None:
    queue = reading(channel, 5)
    channel.rpc("basic.cancel", consumer_tag="reader")
    channel.send("basic.nack", delivery_tag=4, multiple=True, requeue=True)
    assert channel.drain(queue) == [b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("tag", [0, 2, 2**63])
def test_an_unknown_tag(channel: Channel, answer: str, tag: int) -> None:
    reading(channel, 1)
    channel.refused(406, f"PRECONDITION_FAILED - unknown delivery tag {tag}", answer, delivery_tag=tag)


@pytest.mark.parametrize("answer", ANSWERS)
def test_twice(channel: Channel, answer: str) -> None:
    reading(channel, 2)
    channel.send(answer, delivery_tag=1)
    channel.refused(406, "PRECONDITION_FAILED - unknown delivery tag 1", answer, delivery_tag=1)


@pytest.mark.parametrize("answer", ["basic.ack", "basic.nack"])
@pytest.mark.parametrize("tag", [1, 5])
def test_multiple_with_a_tag_that_is_not_out(channel: Channel, answer: str, tag: int) -> None:
    reading(channel, 3)
    channel.send("basic.ack", delivery_tag=1)
    text = f"PRECONDITION_FAILED - unknown delivery tag {tag}"
    channel.refused(406, text, answer, delivery_tag=tag, multiple=True)


def test_a_delivery_with_no_ack_cannot_be_acked(channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.publish("m", queue)
    assert channel.get(queue, no_ack=True) is not None
    channel.refused(406, "PRECONDITION_FAILED - unknown delivery tag 1", "basic.ack", delivery_tag=1)


def test_a_tag_of_another_channel(channel: Channel) -> None:
    reading(channel, 1)
    sibling = channel.connection.channel()
    sibling.refused(406, "PRECONDITION_FAILED - unknown delivery tag 1", "basic.ack", delivery_tag=1)


def test_an_error_gives_all_back_that_was_not_acked_before(channel: Channel) -> None:
    queue = reading(channel, 4)
    with channel.connection.in_segments("whole"):
        channel.send("basic.ack", delivery_tag=2)
        channel.send("basic.ack", delivery_tag=77)
        channel.send("basic.ack", delivery_tag=3)
    channel.expect_close(406, "PRECONDITION_FAILED - unknown delivery tag 77", "basic.ack")
    again = channel.connection.channel()
    assert again.drain(queue) == [b"1", b"3", b"4"]


def test_only_delivered_messages_are_marked_redelivered(channel: Channel) -> None:
    queue = channel.declare_queue()
    reader = channel.connection.channel()
    reader.rpc("basic.qos", prefetch_count=1)
    reader.consume(queue)
    channel.publish("seen", queue)
    channel.publish("unseen", queue)
    reader.delivery()
    reader.rpc("channel.close", reply_code=200)
    found = [channel.get(queue), channel.get(queue)]
    assert [(method.body, method.redelivered) for method in found if method] == [(b"seen", True), (b"unseen", False)]


def test_many_acks(channel: Channel) -> None:
    count = 3000
    queue = reading(channel, count)
    with channel.connection.in_segments("whole"):
        for tag in range(count, 0, -1):
            if tag % 3:
                channel.send("basic.ack", delivery_tag=tag)
    channel.expect_nothing()
    assert returned(channel, queue) == list(range(3, count + 1, 3))
