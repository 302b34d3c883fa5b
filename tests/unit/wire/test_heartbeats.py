"""Time: heartbeats both ways, the handshake's limit, the wait for close-ok."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pandomq.errors import connection_forced
from pandomq.limits import CLOSE_OK_WAIT_MS_MAX, HANDSHAKE_MS_MAX
from pandomq.methods import ChannelOpenOk, ConnectionCloseOk
from pandomq.wire.codec import HEARTBEAT, encode_frame
from pandomq.wire.connection import Connection
from pandomq.wire.pulse import NEVER_MS, Tick
from pandomq.wire.states import State
from tests.unit.wire.peer import HEADER, in_state, logged_in, new_connection, running, start_ok


def beats(connection: Connection, until_ms: int, step_ms: int, *, peer_speaks: bool) -> list[int]:
    """When heartbeats were sent, ticking regularly; stops at a drop."""
    times = []
    for now_ms in range(step_ms, until_ms + 1, step_ms):
        if peer_speaks:
            connection.receive(HEARTBEAT)
        match connection.tick(now_ms):
            case Tick.SEND:
                assert connection.data_to_send() == HEARTBEAT
                times.append(now_ms)
            case Tick.DROP:
                break
            case Tick.NOTHING:
                assert connection.data_to_send() == b""
    return times


@pytest.mark.parametrize("step_ms", [1000, 2500, 5000])
def test_a_silent_broker_sends_a_heartbeat_each_half_interval(step_ms: int) -> None:
    times = beats(running(heartbeat=10), 60_000, step_ms, peer_speaks=True)
    assert times[0] <= 10_000, "open-ok is dated by the first tick after it"
    assert {later - earlier for earlier, later in pairwise(times)} == {5000}


def test_no_heartbeat_is_sent_while_there_is_other_traffic() -> None:
    connection = running(heartbeat=2)
    for now_ms in range(500, 20_000, 500):
        connection.receive(HEARTBEAT)
        if now_ms % 1000:
            connection.send(1, ChannelOpenOk())
            connection.data_to_send()
        else:
            connection.wrote()
        assert connection.tick(now_ms) is Tick.NOTHING


def test_a_silent_peer_is_dropped_after_two_intervals() -> None:
    connection = running(heartbeat=10)
    connection.tick(0)
    for now_ms in range(1000, 20_000, 1000):
        assert connection.tick(now_ms) is not Tick.DROP
    assert connection.tick(20_000) is Tick.DROP
    assert in_state(connection, State.CLOSED)


def test_any_traffic_counts_as_a_sign_of_life() -> None:
    connection = running(heartbeat=10)
    for now_ms in range(1000, 100_000, 1000):
        if now_ms % 15_000 == 0:
            connection.receive(b"\x01")
        assert connection.tick(now_ms) is not Tick.DROP


def test_without_heartbeats_nothing_is_due() -> None:
    connection = running(heartbeat=0)
    assert connection.due_ms == NEVER_MS
    assert connection.tick(10**9) is Tick.NOTHING
    assert connection.due_ms == NEVER_MS


def test_a_tick_is_due_each_half_interval() -> None:
    connection = running(heartbeat=60, now_ms=1000)
    assert connection.due_ms == 31_000
    connection.tick(31_000)
    assert connection.due_ms == 61_000


@pytest.mark.parametrize("data", [b"", b"AMQP", HEADER, HEADER + start_ok()])
def test_the_handshake_takes_a_bounded_time(data: bytes) -> None:
    connection = new_connection(now_ms=5)
    connection.receive(data)
    assert connection.due_ms == 5 + HANDSHAKE_MS_MAX
    assert connection.tick(4 + HANDSHAKE_MS_MAX) is Tick.NOTHING
    assert connection.tick(5 + HANDSHAKE_MS_MAX) is Tick.DROP
    assert in_state(connection, State.CLOSED)


def test_the_handshake_is_not_over_with_the_login() -> None:
    assert logged_in().tick(HANDSHAKE_MS_MAX) is Tick.DROP


def test_close_ok_is_waited_for_a_bounded_time() -> None:
    connection = running(heartbeat=0)
    connection.close(connection_forced("x"), 100)
    assert connection.due_ms == 100 + CLOSE_OK_WAIT_MS_MAX
    assert connection.tick(99 + CLOSE_OK_WAIT_MS_MAX) is Tick.NOTHING
    assert connection.tick(100 + CLOSE_OK_WAIT_MS_MAX) is Tick.DROP


def test_nothing_is_due_after_the_end() -> None:
    connection = running()
    connection.close(connection_forced("x"), 0)
    connection.receive(encode_frame(0, ConnectionCloseOk()))
    assert connection.due_ms == NEVER_MS
    assert connection.tick(10**9) is Tick.NOTHING
