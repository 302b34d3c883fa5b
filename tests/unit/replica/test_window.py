"""How much may be on its way to a peer, by how soon it answers."""

from __future__ import annotations

from pandomq.ids import LogIndex, NodeName
from pandomq.replica.limits import IN_FLIGHT_BYTES_MAX, WINDOW_BYTES_FIRST, WINDOW_BYTES_MIN
from pandomq.replica.log.progress import Progress, ProgressState

DELAY_MS = 250


def streaming(in_flight_bytes: int) -> Progress:
    peer = Progress(NodeName("n2"), LogIndex(1))
    peer.phase = ProgressState.STREAMING
    peer.sent(LogIndex(1), in_flight_bytes, 1)
    return peer


def test_a_window_that_is_used_grows_with_each_answer_in_time_up_to_a_limit() -> None:
    peer = streaming(IN_FLIGHT_BYTES_MAX)
    sizes = [peer.window_bytes]
    for now_ms in range(1_000, 3_000, 200):
        peer.answered(now_ms - DELAY_MS // 2, now_ms, DELAY_MS)
        sizes.append(peer.window_bytes)
    assert sizes[:3] == [WINDOW_BYTES_FIRST, 2 * WINDOW_BYTES_FIRST, 4 * WINDOW_BYTES_FIRST]
    assert sizes[-1] == IN_FLIGHT_BYTES_MAX


def test_a_window_that_is_not_used_stays_as_it_is() -> None:
    peer = streaming(WINDOW_BYTES_FIRST // 2 - 1)
    peer.answered(999, 1_000, DELAY_MS)
    assert peer.window_bytes == WINDOW_BYTES_FIRST


def test_late_answers_narrow_it_down_to_a_limit_and_not_below() -> None:
    peer = streaming(IN_FLIGHT_BYTES_MAX)
    for now_ms in range(10_000, 30_000, 1_000):
        peer.answered(now_ms - DELAY_MS - 1, now_ms, DELAY_MS)
    assert peer.window_bytes == WINDOW_BYTES_MIN
    assert not peer.has_room
    peer.acknowledged(LogIndex(1), LogIndex(1), 30_000)
    assert peer.has_room


def test_late_answers_from_before_the_last_change_do_not_narrow_the_window() -> None:
    """A whole window of late answers to one burst is one reason to narrow it, not many."""
    peer = streaming(IN_FLIGHT_BYTES_MAX)
    for late_ms in (300, 320, 340, 360):
        peer.answered(1_000, 1_000 + late_ms, DELAY_MS)
    assert peer.window_bytes == WINDOW_BYTES_FIRST // 2
