"""Opening, closing and reusing channels; flow; the state that remains after a channel's error."""

from __future__ import annotations

import pytest

from tests.support.client import Channel, Connect, Connection
from tests.support.frames import BODY, HEADER

MISSING = "NOT_FOUND - no queue '{}' in vhost '/'"


def test_open_ok(connection: Connection) -> None:
    connection.send("channel.open", 1, out_of_band="ignored")
    assert connection.expect("channel.open-ok", 1).channel_id == b""


def test_a_second_open(channel: Channel) -> None:
    channel.refused_hard(504, "CHANNEL_ERROR - second 'channel.open' seen", "channel.open")


@pytest.mark.parametrize(
    "method", ["channel.flow", "channel.close", "channel.close-ok", "queue.declare", "basic.ack", "tx.select"]
)
def test_a_channel_has_to_be_opened_first(connection: Connection, method: str) -> None:
    connection.send(method, 7)
    connection.expect_close(504, "CHANNEL_ERROR - expected 'channel.open'", method)


@pytest.mark.parametrize("kind", [HEADER, BODY])
def test_a_content_frame_on_a_channel_that_is_not_open(connection: Connection, kind: int) -> None:
    connection.send_frame(kind, 7, b"\x00\x3c" + b"\x00" * 12)
    connection.expect_close(505, "UNEXPECTED_FRAME - expected method frame, got non method frame instead")


def test_close_is_answered_and_frees_the_number(channel: Channel) -> None:
    for _ in range(3):
        channel.rpc("channel.close", reply_code=200, reply_text="done")
        channel.rpc("channel.open")
    channel.expect_nothing()


def test_a_close_of_the_channel_gives_back_unacked_messages(channel: Channel) -> None:
    reader = channel.connection.channel()
    queue = channel.declare_queue()
    for body in ("1", "2", "3"):
        channel.publish(body, queue)
    reader.consume(queue)
    assert reader.bodies(3) == [b"1", b"2", b"3"]
    reader.send("basic.ack", delivery_tag=2)
    reader.rpc("channel.close", reply_code=200)
    found = [channel.get(queue), channel.get(queue)]
    assert [(method.body, method.redelivered) for method in found if method] == [(b"1", True), (b"3", True)]
    assert channel.counts(queue) == (0, 0)


def test_delivery_tags_begin_anew_on_a_reopened_channel(channel: Channel) -> None:
    queue = channel.declare_queue()
    for _ in range(2):
        channel.publish("m", queue)
        found = channel.get(queue, no_ack=False)
        assert found is not None
        assert found.delivery_tag == 1
        channel.rpc("channel.close", reply_code=200)
        channel.rpc("channel.open")


def test_flow_is_answered(channel: Channel) -> None:
    assert channel.rpc("channel.flow", active=True).active is True


def test_flow_cannot_be_stopped(channel: Channel) -> None:
    channel.refused_hard(540, "NOT_IMPLEMENTED - active=false", "channel.flow", active=False)


@pytest.mark.parametrize(
    "method", ["channel.open-ok", "channel.flow-ok", "queue.declare-ok", "basic.consume-ok", "basic.get-empty"]
)
def test_methods_that_only_a_broker_sends_are_refused(channel: Channel, method: str) -> None:
    channel.refused_hard(503, "COMMAND_INVALID - unimplemented method", method)


def test_contents_that_only_a_broker_sends(channel: Channel) -> None:
    channel.send("basic.deliver")
    channel.send_content(b"m")
    channel.connection.expect_close(503, "COMMAND_INVALID - unimplemented method", "basic.deliver")


def test_access_request_is_still_answered(channel: Channel) -> None:
    assert channel.rpc("access.request", realm="/data", active=True).ticket == 1


def test_an_error_closes_one_channel_and_leaves_the_others(connection: Connection, name: str) -> None:
    failing, other = connection.channel(), connection.channel()
    queue = other.declare_queue()
    failing.refused(404, MISSING.format(name), "queue.declare", queue=name, passive=True)
    other.publish("m", queue)
    assert other.drain(queue) == [b"m"]


def test_the_number_is_free_again_after_close_ok(channel: Channel, name: str) -> None:
    for _ in range(3):
        channel.refused(404, MISSING.format(name), "queue.declare", queue=name, passive=True)
        # The close-ok is not answered, so an answer on another number shows that it has been handled.
        channel.connection.channel().rpc("channel.close", reply_code=200)
        channel.rpc("channel.open")
    channel.expect_nothing()


@pytest.mark.parametrize("how", ["whole", "bytewise"])
def test_methods_after_an_error_on_the_channel_are_ignored(connection: Connection, name: str, how: str) -> None:
    channel, other = connection.channel(), connection.channel()
    queue = other.declare_queue()
    with connection.in_segments(how):
        channel.send("queue.declare", queue=name, passive=True)
        channel.publish("lost", queue)
        channel.send("queue.delete", queue=queue)
        channel.send("basic.ack", delivery_tag=99)
    channel.expect_close(404, MISSING.format(name), "queue.declare")
    assert other.counts(queue) == (0, 0)


def test_a_close_that_crosses_an_error_is_answered(channel: Channel, name: str) -> None:
    with channel.connection.in_segments("whole"):
        channel.send("queue.declare", queue=name, passive=True)
        channel.send("channel.close", reply_code=200)
    assert channel.expect("channel.close").reply_code == 404
    channel.expect("channel.close-ok")
    channel.send("channel.close-ok")


def test_many_channels_do_not_mix(connection: Connection) -> None:
    channels = [connection.channel() for _ in range(50)]
    queues = [channel.declare_queue() for channel in channels]
    with connection.in_segments("whole"):
        for round_number in range(3):
            for channel, queue in zip(channels, queues, strict=True):
                channel.publish(f"{queue} {round_number}", queue)
    for channel, queue in zip(channels, queues, strict=True):
        assert channel.drain(queue) == [f"{queue} {number}".encode() for number in range(3)]


def test_contents_on_different_channels_may_be_interleaved(connection: Connection) -> None:
    one, two = connection.channel(), connection.channel()
    first, second = one.declare_queue(), two.declare_queue()
    with connection.in_segments("whole"):
        one.send("basic.publish", routing_key=first)
        two.send("basic.publish", routing_key=second)
        send_header(two, 4)
        send_header(one, 6)
        connection.send_frame(BODY, one.number, b"one")
        connection.send_frame(BODY, two.number, b"two!")
        connection.send_frame(BODY, one.number, b"one")
    assert one.drain(first) == [b"oneone"]
    assert two.drain(second) == [b"two!"]


def send_header(channel: Channel, size: int) -> None:
    channel.connection.send_frame(HEADER, channel.number, b"\x00\x3c\x00\x00" + size.to_bytes(8, "big") + b"\x00\x00")


def test_a_dropped_socket_frees_everything(connect: Connect, channel: Channel, name: str) -> None:
    queue = channel.declare_queue(name, exclusive=False)
    leaving = connect()
    reader = leaving.channel()
    reader.consume(queue)
    channel.publish("m", queue)
    assert reader.delivery().redelivered is False
    leaving.drop()
    channel.consume(queue)
    again = channel.delivery()
    assert (again.body, again.redelivered) == (b"m", True)
