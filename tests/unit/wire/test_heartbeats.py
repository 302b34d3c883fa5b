"""Time: heartbeats both ways, the handshake's limit, the wait for close-ok."""

from __future__ import annotations

from collections import deque
from itertools import accumulate, cycle, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pandomq.errors import connection_forced
from pandomq.limits import CLOSE_OK_WAIT_MS_MAX, HANDSHAKE_MS_MAX
from pandomq.methods import ChannelOpenOk, ConnectionCloseOk
from pandomq.node.clients.deadlines import BUCKET_MS, Deadlines
from pandomq.wire.codec import HEARTBEAT, encode_frame
from pandomq.wire.connection import Connection
from pandomq.wire.pulse import NEVER_MS, Tick
from pandomq.wire.states import ConnectionState
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


@pytest.mark.parametrize(("step_ms", "apart_ms"), [(500, 3_000), (1_250, 3_750), (2_500, 5_000)])
def test_a_silent_broker_sends_a_heartbeat_each_half_interval(step_ms: int, apart_ms: int) -> None:
    """Ticks that come more often than they must find half an interval somewhat sooner."""
    times = beats(running(heartbeat=10), 60_000, step_ms, peer_speaks=True)
    assert times[0] <= 5_000
    assert {later - earlier for earlier, later in pairwise(times)} == {apart_ms}


@given(
    st.lists(st.integers(0, 1_000), max_size=40),
    st.lists(st.integers(0, BUCKET_MS // 8), min_size=1, max_size=8),
    st.integers(0, BUCKET_MS - 1),
)
def test_no_gap_between_octets_is_longer_than_half_an_interval(
    pauses_ms: list[int], delays_ms: list[int], opened_ms: int
) -> None:
    """For heartbeats each second. Some clients give up after one interval, whenever the last octets were written."""
    writes_ms = deque(accumulate(pauses_ms, initial=opened_ms))
    connection = running(heartbeat=1, now_ms=opened_ms)
    left_ms = []
    deadlines: Deadlines[Connection] = Deadlines(opened_ms)
    deadlines.put(connection, connection.due_ms)
    late_ms = cycle(delays_ms)
    for bucket_ms in range(BUCKET_MS, 20_000, BUCKET_MS):
        now_ms = bucket_ms + next(late_ms)
        while writes_ms and writes_ms[0] < now_ms:
            left_ms.append(writes_ms.popleft())
            connection.wrote()
        connection.receive(HEARTBEAT)
        for due in deadlines.take_due(now_ms):
            if due.tick(now_ms) is Tick.SEND:
                left_ms.append(now_ms)
            deadlines.put(due, due.due_ms)
    assert max(later - earlier for earlier, later in pairwise(left_ms)) <= 500 + BUCKET_MS // 4


@given(st.lists(st.integers(1, 3_000), min_size=1, max_size=40), st.integers(0, 1_990), st.integers(0, 1_990))
@example([490, 10, 500, 500, 500, 500], 485, 1_990)
@example([240, 10, 250, 250, 250, 250, 250, 250, 250, 250], 235, 1_990)
def test_a_client_whose_octets_wait_in_the_socket_is_not_dropped(
    turns_ms: list[int], first_ms: int, apart_ms: int
) -> None:
    """The loop is busy: a turn takes up to three seconds, and runs its timers before it reads what has arrived. The
    client writes something within every two seconds."""
    connection = running(heartbeat=1)
    now_ms, next_ms = 0, first_ms
    for turn_ms in turns_ms * 3:
        now_ms += turn_ms
        if now_ms >= connection.due_ms:
            assert connection.tick(now_ms) is not Tick.DROP
        if next_ms <= now_ms:
            connection.receive(HEARTBEAT)
            next_ms += (now_ms - next_ms) // (apart_ms + 1) * (apart_ms + 1) + apart_ms + 1


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


@pytest.mark.parametrize("by_ms", [15_000, 3_600_000])
def test_a_late_tick_does_not_count_as_silence_of_the_peer(by_ms: int) -> None:
    """The process did not run, or its clock was set forward."""
    connection = running(heartbeat=10)
    for now_ms in range(0, 10_000, 5_000):
        assert connection.tick(now_ms) is not Tick.DROP
    assert connection.tick(5_000 + by_ms) is not Tick.DROP
    connection.receive(HEARTBEAT)
    late_ms = 5_000 + by_ms
    assert connection.tick(late_ms + 5_000) is not Tick.DROP
    # From then on silence counts as it does always.
    ticks = [connection.tick(late_ms + after_ms) for after_ms in range(10_000, 31_000, 5_000)]
    assert ticks[-1] is Tick.DROP and Tick.DROP not in ticks[:-1]


@pytest.mark.parametrize("pause_ms", [2_000, 10_000, 3_600_000])
def test_after_a_pause_of_the_machine_a_client_has_its_two_intervals(pause_ms: int) -> None:
    """The client did not run either, so none of its heartbeats waits in the socket."""
    connection = running(heartbeat=1)
    connection.receive(HEARTBEAT)
    connection.tick(250)
    resumed_ms = 250 + pause_ms
    for now_ms in range(resumed_ms, resumed_ms + 2_000, 250):
        assert connection.tick(now_ms) is not Tick.DROP
    connection.receive(HEARTBEAT)
    for now_ms in range(resumed_ms + 2_000, resumed_ms + 4_000, 250):
        assert connection.tick(now_ms) is not Tick.DROP


def test_a_silent_peer_is_dropped_after_two_intervals() -> None:
    connection = running(heartbeat=10)
    connection.tick(0)
    for now_ms in range(1000, 21_000, 1000):
        assert connection.tick(now_ms) is not Tick.DROP
    # The octets that had arrived by the last tick have been read in between.
    assert connection.tick(21_000) is Tick.DROP
    assert in_state(connection, ConnectionState.CLOSED)


def test_any_traffic_counts_as_a_heartbeat() -> None:
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


def test_a_tick_is_due_four_times_in_an_interval() -> None:
    connection = running(heartbeat=60, now_ms=1000)
    assert connection.due_ms == 16_000
    connection.tick(16_000)
    assert connection.due_ms == 31_000


def test_a_tick_that_is_somewhat_late_does_not_put_off_the_next() -> None:
    connection = running(heartbeat=1, now_ms=1000)
    connection.tick(1_499)
    assert connection.due_ms == 1_500
    # A tick that is very late begins anew, and so does one that is early.
    connection.tick(2_600)
    assert connection.due_ms == 2_850
    connection.tick(2_700)
    assert connection.due_ms == 2_950


@pytest.mark.parametrize("data", [b"", b"AMQP", HEADER, HEADER + start_ok()])
def test_the_handshake_takes_a_bounded_time(data: bytes) -> None:
    connection = new_connection(now_ms=5)
    connection.receive(data)
    assert connection.due_ms == 5 + HANDSHAKE_MS_MAX
    assert connection.tick(4 + HANDSHAKE_MS_MAX) is Tick.NOTHING
    assert connection.tick(5 + HANDSHAKE_MS_MAX) is Tick.DROP
    assert in_state(connection, ConnectionState.CLOSED)


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
