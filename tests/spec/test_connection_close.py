"""The end of connections: by either side, by both at once, and for methods that are illegal on channel 0."""

from __future__ import annotations

import pytest

from tests.support.client import Channel, Connect, Connection
from tests.support.frames import BODY, HEADER, METHOD, frame
from tests.support.methods import encode


def test_a_close_is_answered(connection: Connection) -> None:
    connection.send("connection.close", reply_code=200, reply_text="bye")
    connection.expect("connection.close-ok")
    connection.drop()


def test_methods_after_a_close_are_ignored(connection: Connection, name: str) -> None:
    channel = connection.channel()
    with connection.in_segments("whole"):
        connection.send("connection.close", reply_code=200)
        channel.send("queue.declare", queue=name, passive=True)
    connection.expect("connection.close-ok")
    assert len(connection.frames_seen) == 5, "start, tune, two open-ok, close-ok"
    connection.drop()


@pytest.mark.parametrize("by_fault", [False, True])
def test_methods_before_the_end_are_answered(connection: Connection, name: str, by_fault: bool) -> None:
    channel = connection.channel()
    with connection.in_segments("whole"):
        channel.send("queue.declare", queue=name, exclusive=True)
        channel.publish("m", name + "-missing", mandatory=True)
        if by_fault:
            connection.send_frame(7, 0, b"x")
        else:
            connection.send("connection.close", reply_code=200)
    last = "connection.close" if by_fault else "connection.close-ok"
    while connection.methods_seen[-1].name != last:
        connection.take_in()
    names = [method.name for method in connection.methods_seen]
    assert names[-3:] == ["queue.declare-ok", "basic.return", last]
    connection.drop()


def test_a_close_ends_every_channel_and_gives_messages_back(connect: Connect, channel: Channel, name: str) -> None:
    queue = channel.declare_queue(name, exclusive=False)
    channel.publish("m", queue)
    leaving = connect()
    for _ in range(3):
        reader = leaving.channel()
        assert reader.get(queue, no_ack=False) is not None or reader.number > 1
    leaving.close()
    again = channel.get(queue)
    assert again is not None
    assert (again.body, again.redelivered) == (b"m", True)


def test_crossing_closes_are_both_answered(connection: Connection) -> None:
    with connection.in_segments("whole"):
        connection.send_frame(7, 0, b"x")
        connection.send("connection.close", reply_code=200)
    assert connection.expect("connection.close").reply_code == 501
    connection.expect("connection.close-ok")
    connection.drop()


def test_frames_after_the_brokers_close_are_ignored_until_close_ok(channel: Channel, name: str) -> None:
    connection = channel.connection
    with connection.in_segments("whole"):
        channel.publish("m", immediate=True)
        channel.send("queue.declare", queue=name, exclusive=True)
        channel.publish("another")
    connection.expect_close(540, "NOT_IMPLEMENTED - immediate=true", "basic.publish")


@pytest.mark.parametrize(
    "method",
    [
        "connection.start-ok",
        "connection.tune-ok",
        "connection.open",
        "connection.close-ok",
        "connection.blocked",
        "channel.open",
        "queue.declare",
        "tx.select",
    ],
)
def test_methods_that_have_no_place_on_channel_0(connection: Connection, method: str) -> None:
    connection.send(method)
    connection.expect_close(504, "CHANNEL_ERROR - unexpected method in connection state running", method)


def test_connection_methods_belong_on_channel_0(channel: Channel) -> None:
    channel.refused_hard(503, "COMMAND_INVALID - unimplemented method", "connection.close", reply_code=200)


def test_update_secret_is_answered(connection: Connection) -> None:
    connection.send("connection.update-secret", new_secret=b"whatever", reason="rotation")
    connection.expect("connection.update-secret-ok")
    connection.channel().expect_nothing()


@pytest.mark.parametrize(
    ("bytes_sent", "text"),
    [
        (frame(7, 0, b"x"), "FRAME_ERROR - type 7,…"),
        (frame(METHOD, 0, b"\x00"), "FRAME_ERROR - type 1, all octets = <<0>>: unknown_frame"),
        (frame(8, 0, b"x"), "FRAME_ERROR - type 8,…"),
        (frame(METHOD, 0, encode("connection.close"))[:-1] + b"\x00", "FRAME_ERROR - type 1,…"),
        (frame(METHOD, 1, b"\x00\x14\x00"), "FRAME_ERROR - type 1, all octets = <<0,20,0>>: unknown_frame"),
    ],
)
def test_bytes_that_are_no_frame(connection: Connection, bytes_sent: bytes, text: str) -> None:
    connection.channel()
    connection.send_bytes(bytes_sent)
    connection.expect_close(501, text)


@pytest.mark.parametrize("kind", [HEADER, BODY])
def test_content_frames_have_no_place_on_channel_0(connection: Connection, kind: int) -> None:
    connection.send_frame(kind, 0, b"\x00\x3c" + b"\x00" * 12)
    connection.expect_close(505, "UNEXPECTED_FRAME - …")


@pytest.mark.parametrize("payload", [b"\x00\x63\x00\x0a", b"\x00\x32\x00\x63", b"\xff\xff\xff\xff"])
def test_an_unknown_method_ends_the_connection(connection: Connection, payload: bytes) -> None:
    connection.channel()
    connection.send_frame(METHOD, 1, payload)
    connection.expect_end()


@pytest.mark.parametrize("payload", [b"\x00\x32\x00\x0a\x00\x00", encode("queue.declare", exclusive=True) + b"more"])
def test_arguments_that_are_too_short_or_too_long(connection: Connection, payload: bytes) -> None:
    connection.channel()
    connection.send_frame(METHOD, 1, payload)
    connection.expect_close(501, "FRAME_ERROR - cannot decode …", "queue.declare")


@pytest.mark.parametrize(
    "table", [b"\x00\x00\x00\x03\x01aZ", b"\x00\x00\x00\x01\x05", b"\x00\x00\x00\x07\x01aS\xff\xff\xff\xff"]
)
def test_a_broken_table_ends_the_connection(connection: Connection, table: bytes) -> None:
    connection.channel()
    connection.send_frame(METHOD, 1, encode("queue.declare", exclusive=True, arguments=table))
    connection.expect_end()


def test_a_name_that_is_no_utf8_is_a_frame_error(channel: Channel) -> None:
    channel.send("queue.declare", queue=b"\xff\xfe", exclusive=True)
    channel.connection.expect_close(501, "FRAME_ERROR - Malformed UTF-8 in shortstr")


def test_one_broken_connection_leaves_the_others_alone(connect: Connect, channel: Channel) -> None:
    queue = channel.declare_queue()
    channel.consume(queue, no_ack=True)
    broken = connect()
    broken.channel()
    broken.send_bytes(b"\xff" * 1000)
    broken.expect_end()
    channel.publish("still here", queue)
    assert channel.delivery().body == b"still here"
