"""queue.purge and queue.delete: counts, if-unused, if-empty, no-wait."""

from __future__ import annotations

import pytest

from tests.support.client import Channel


def missing(queue: str) -> str:
    return f"NOT_FOUND - no queue '{queue}' in vhost '/'"


def filled(channel: Channel, name: str, count: int = 3) -> str:
    queue = channel.declare_queue(name)
    for number in range(count):
        channel.publish(str(number), queue)
    return queue


@pytest.mark.parametrize("count", [0, 1, 300])
def test_purge_returns_the_number_of_removed_messages(channel: Channel, name: str, count: int) -> None:
    queue = filled(channel, name, count)
    assert channel.rpc("queue.purge", queue=queue).message_count == count
    assert channel.counts(queue) == (0, 0)


def test_purge_leaves_unacked_messages(channel: Channel, name: str) -> None:
    queue = filled(channel, name)
    assert channel.get(queue, no_ack=False) is not None
    assert channel.rpc("queue.purge", queue=queue).message_count == 2
    channel.send("basic.reject", delivery_tag=1, requeue=True)
    assert channel.drain(queue) == [b"0"]


def test_purge_without_waiting(channel: Channel, name: str) -> None:
    queue = filled(channel, name)
    channel.send("queue.purge", queue=queue, no_wait=True)
    channel.expect_nothing()
    assert channel.counts(queue) == (0, 0)


def test_purge_lies_between_the_publishes_of_a_batch(channel: Channel, name: str) -> None:
    queue = channel.declare_queue(name)
    with channel.connection.in_segments("whole"):
        channel.publish("1", queue)
        channel.publish("2", queue)
        channel.send("queue.purge", queue=queue)
        channel.publish("3", queue)
    assert channel.expect("queue.purge-ok").message_count == 2
    assert channel.drain(queue) == [b"3"]


@pytest.mark.parametrize("no_wait", [False, True])
def test_purging_a_missing_queue_is_refused(channel: Channel, name: str, no_wait: bool) -> None:
    channel.refused(404, missing(name), "queue.purge", queue=name, no_wait=no_wait)


@pytest.mark.parametrize("count", [0, 5])
def test_delete_returns_the_number_of_ready_messages(channel: Channel, name: str, count: int) -> None:
    queue = filled(channel, name, count)
    assert channel.rpc("queue.delete", queue=queue).message_count == count
    channel.refused(404, missing(name), "queue.declare", queue=name, passive=True)


def test_deleting_a_missing_queue_is_no_error(channel: Channel, name: str) -> None:
    assert channel.rpc("queue.delete", queue=name).message_count == 0
    assert channel.rpc("queue.delete", queue=name, if_unused=True, if_empty=True).message_count == 0


def test_delete_without_waiting(channel: Channel, name: str) -> None:
    filled(channel, name)
    channel.send("queue.delete", queue=name, no_wait=True)
    channel.expect_nothing()
    channel.refused(404, missing(name), "queue.declare", queue=name, passive=True)


@pytest.mark.parametrize("no_wait", [False, True])
def test_if_empty(channel: Channel, name: str, no_wait: bool) -> None:
    queue = filled(channel, name, 1)
    text = f"PRECONDITION_FAILED - queue '{name}' in vhost '/' not empty"
    channel.refused(406, text, "queue.delete", queue=queue, if_empty=True, no_wait=no_wait)
    again = channel.connection.channel()
    assert again.drain(queue) == [b"0"]
    again.rpc("queue.delete", queue=queue, if_empty=True)


def test_if_unused(channel: Channel, name: str) -> None:
    queue = filled(channel, name, 1)
    reader = channel.connection.channel()
    reader.consume(queue)
    reader.delivery()
    text = f"PRECONDITION_FAILED - queue '{name}' in vhost '/' in use"
    channel.refused(406, text, "queue.delete", queue=queue, if_unused=True)
    reader.rpc("channel.close", reply_code=200)
    again = channel.connection.channel()
    assert again.rpc("queue.delete", queue=queue, if_unused=True).message_count == 1


def test_a_message_that_is_not_acked_does_not_hinder_if_empty(channel: Channel, name: str) -> None:
    queue = filled(channel, name, 1)
    channel.get(queue, no_ack=False)
    assert channel.rpc("queue.delete", queue=queue, if_empty=True).message_count == 0


def test_consumers_receive_a_cancel(channel: Channel, other: Channel, name: str) -> None:
    queue = channel.declare_queue(name, exclusive=False)
    for tag in ("one", "two"):
        other.consume(queue, tag)
    channel.rpc("queue.delete", queue=queue)
    cancels = [other.expect("basic.cancel") for _ in range(2)]
    assert {cancel.consumer_tag for cancel in cancels} == {"one", "two"}
    assert all(cancel.no_wait for cancel in cancels)
    other.expect_nothing()


def test_consumers_without_the_capability_receive_no_cancel(channel: Channel, connect: object, name: str) -> None:
    assert callable(connect)
    reader: Channel = connect(client_properties={"capabilities": {}}).channel()
    queue = channel.declare_queue(name, exclusive=False)
    reader.consume(queue)
    channel.rpc("queue.delete", queue=queue)
    reader.expect_nothing()


def test_acks_of_a_deleted_queue_are_taken(channel: Channel, name: str) -> None:
    queue = filled(channel, name)
    channel.consume(queue)
    channel.bodies(3)
    channel.rpc("queue.delete", queue=queue)
    assert channel.expect("basic.cancel").no_wait
    channel.send("basic.ack", delivery_tag=1)
    channel.send("basic.nack", delivery_tag=3, multiple=True, requeue=True)
    channel.expect_nothing()


def test_a_new_queue_of_the_same_name_is_empty(channel: Channel, name: str) -> None:
    filled(channel, name)
    channel.get(name, no_ack=False)
    channel.rpc("queue.delete", queue=name)
    channel.declare_queue(name, arguments={"x-max-length": 10})
    channel.send("basic.nack", delivery_tag=1, requeue=True)
    assert channel.drain(name) == []
