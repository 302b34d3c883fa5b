"""Channel-max, frame-max and heartbeat: the values that the broker proposes, and how it obeys the agreed ones."""

from __future__ import annotations

import pytest

from tests.support.client import Connect, Connection
from tests.support.fields import content_header
from tests.support.frames import BODY, HEADER


def test_the_proposal(raw: Connection) -> None:
    tune = raw.log_in()
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, 131072, 60)


@pytest.mark.parametrize(
    "answer",
    [
        {"frame_max": 4095},
        {"frame_max": 1},
        {"frame_max": 131073},
        {"frame_max": 2**32 - 1},
        {"channel_max": 2048},
        {"channel_max": 65535},
    ],
)
def test_an_answer_beyond_the_proposal_ends_the_conversation(raw: Connection, answer: dict[str, int]) -> None:
    raw.log_in()
    raw.send("connection.tune-ok", 0, **({"channel_max": 2047, "frame_max": 131072, "heartbeat": 0} | answer))
    raw.expect_end()


@pytest.mark.parametrize("frame_max", [4096, 8192, 131072])
def test_no_frame_is_larger_than_agreed(connect: Connect, frame_max: int) -> None:
    connection = connect(frame_max=frame_max)
    channel = connection.channel()
    queue = channel.declare_queue()
    body = bytes(range(256)) * 1500
    channel.publish(body, queue)
    channel.consume(queue, no_ack=True)
    assert channel.delivery().body == body
    sizes = [size for kind, _, size in connection.frames_seen if kind == BODY]
    assert max(sizes) <= frame_max - 8
    assert len(sizes) == -(-len(body) // (frame_max - 8)), "each body frame but the last one is full"


def test_a_body_is_cut_for_each_reader_to_its_own_size(connect: Connect) -> None:
    small, large = connect(frame_max=4096), connect(frame_max=131072)
    reader, writer = small.channel(), large.channel()
    queue = reader.declare_queue()
    reader.consume(queue, no_ack=True)
    writer.publish(b"y" * 100_000, queue)
    assert reader.delivery().body == b"y" * 100_000
    assert max(size for _, _, size in small.frames_seen) <= 4096 - 8


def test_a_frame_larger_than_agreed_is_a_frame_error(connect: Connect) -> None:
    connection = connect(frame_max=4096)
    channel = connection.channel()
    channel.send("basic.publish")
    connection.send_frame(HEADER, 1, content_header(10_000, {}))
    connection.send_frame(BODY, 1, b"x" * 5000)
    connection.expect_close(501, "FRAME_ERROR - type 3, all octets = <<>>: {frame_too_large,5000,4088}")


def test_a_large_header_fits_when_it_is_within_the_frame(connect: Connect) -> None:
    channel = connect(frame_max=4096).channel()
    queue = channel.declare_queue()
    channel.publish("", queue, headers={"h": "v" * 4000})
    found = channel.get(queue)
    assert found is not None
    assert found.headers == {"h": "v" * 4000}


def test_one_channel_too_many(connect: Connect) -> None:
    connection = connect(channel_max=3)
    for number in (1, 2, 3):
        connection.channel(number)
    connection.send("channel.open", 4)
    text = "NOT_ALLOWED - number of channels opened (3) has reached the negotiated channel_max (3)"
    connection.expect_close(530, text)


def test_a_closed_channel_makes_room_for_another(connect: Connect) -> None:
    connection = connect(channel_max=2)
    connection.channel(1)
    second = connection.channel(2)
    for _ in range(5):
        second.rpc("channel.close", reply_code=200)
        second = connection.channel(2)
    second.expect_nothing()


def test_the_highest_number_may_be_used(connect: Connect) -> None:
    connection = connect(channel_max=2047)
    connection.channel(2047).expect_nothing()
    connection.channel(1).expect_nothing()


def test_all_channels_at_once(connect: Connect) -> None:
    connection = connect(channel_max=2047)
    with connection.in_segments("whole"):
        for number in range(1, 2048):
            connection.send("channel.open", number)
    for number in range(1, 2048):
        connection.expect("channel.open-ok", number)
    connection.close()
