"""Heartbeats in both directions. The protocol is about time here, so these tests take some."""

from __future__ import annotations

import contextlib
import time

from tests.support.client import Connect, Connection
from tests.support.frames import HEARTBEAT, EndOfStreamError

LONGER_THAN_TWO_INTERVALS_S = 3.5


def listen(connection: Connection, seconds: float) -> None:
    """Receives everything for a while."""
    deadline = time.monotonic() + seconds
    with contextlib.suppress(TimeoutError):
        while (left := deadline - time.monotonic()) > 0:
            connection.receive(0, left)


def test_a_silent_client_gets_heartbeats_and_is_given_up_after_two_intervals(connect: Connect) -> None:
    connection = connect(heartbeat=1)
    begin = time.monotonic()
    try:
        while True:
            connection.receive(0, 10)
    except EndOfStreamError:
        lasted = time.monotonic() - begin
    assert connection.heartbeats_seen >= 1
    assert 1.5 < lasted < 8


def test_heartbeats_or_any_other_traffic_keep_a_connection(connect: Connect) -> None:
    beating, busy, agreed_on_none = connect(heartbeat=1), connect(heartbeat=1), connect(heartbeat=0)
    channel = busy.channel()
    end = time.monotonic() + LONGER_THAN_TWO_INTERVALS_S
    while time.monotonic() < end:
        beating.send_frame(HEARTBEAT, 0, b"")
        channel.rpc("channel.flow", active=True)
        listen(beating, 0.4)
    for connection in (beating, busy, agreed_on_none):
        connection.channel().expect_nothing()
    assert beating.heartbeats_seen >= 2
    assert agreed_on_none.heartbeats_seen == 0


def test_a_heartbeat_may_come_in_the_middle_of_a_content(connect: Connect) -> None:
    connection = connect()
    channel = connection.channel()
    queue = channel.declare_queue()
    connection.send_frame(HEARTBEAT, 0, b"")
    channel.send("basic.publish", routing_key=queue)
    connection.send_frame(HEARTBEAT, 0, b"")
    channel.send_content(b"m")
    connection.send_frame(HEARTBEAT, 0, b"")
    assert channel.drain(queue) == [b"m"]


def test_heartbeats_belong_on_channel_0(connection: Connection) -> None:
    connection.channel()
    connection.send_frame(HEARTBEAT, 1, b"")
    connection.expect_close(505, "UNEXPECTED_FRAME - type 8, all octets = <<>>")
