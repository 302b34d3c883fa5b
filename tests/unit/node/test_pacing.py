"""How publishers are slowed down for a backup that catches up, and how not."""

from __future__ import annotations

import logging

import pytest

from pandomq.node.log import pacing
from pandomq.node.log.pacing import LOOK_MS, PERIOD_MS, REST_PERCENT_MAX, REST_PERCENT_STEP, Pacing

MIB = 2**20


class Course:
    """A log that grows as fast as publishers may write, and a backup that reads it at a pace of its own."""

    def __init__(self, written: int, read: int, behind: int) -> None:
        self.pacing = Pacing()
        self._written, self._read = written, read
        self.behind = behind
        self.now_ms = 0

    def look(self) -> None:
        self.now_ms += LOOK_MS
        worked = 100 - self.pacing.rest_percent
        seconds = LOOK_MS / 1000
        self.behind = max(0, self.behind + int((self._written * worked / 100 - self._read) * seconds))
        self.pacing.note_time(self.now_ms)
        assert self.pacing.is_due
        self.pacing.look(self.behind or None, "n2")

    def seconds_to_arrive(self) -> float:
        while self.behind:
            self.look()
            assert self.now_ms < 3_600_000, "it never arrives"
        return self.now_ms / 1000


def test_a_backup_that_is_fast_enough_costs_nothing() -> None:
    course = Course(written=50 * MIB, read=150 * MIB, behind=1024 * MIB)
    while course.behind:
        course.look()
        assert course.pacing.rest_percent == 0


@pytest.mark.proves("R18")
def test_a_backup_that_is_as_fast_as_the_publishers_catches_up() -> None:
    course = Course(written=80 * MIB, read=80 * MIB, behind=1024 * MIB)
    assert course.seconds_to_arrive() < 180
    assert course.pacing.rest_percent == 0


def test_a_backup_that_is_a_little_slower_catches_up_too() -> None:
    assert Course(written=80 * MIB, read=70 * MIB, behind=1024 * MIB).seconds_to_arrive() < 240


def test_rests_are_bounded_and_a_backup_that_is_slower_still_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    course = Course(written=80 * MIB, read=20 * MIB, behind=1024 * MIB)
    with caplog.at_level(logging.WARNING):
        for _ in range(60):
            course.look()
    assert course.pacing.rest_percent == REST_PERCENT_MAX
    assert len(caplog.messages) == 60 * LOOK_MS // pacing.COMPLAIN_MS
    assert "the log grows faster than backup n2 receives it" in caplog.messages[0]


def test_rests_are_parts_of_periods() -> None:
    paced = Pacing()
    assert paced.wait_ms is None
    paced.rest_percent = REST_PERCENT_STEP
    resting = []
    for now_ms in range(10 * PERIOD_MS):
        paced.note_time(now_ms)
        resting.append(paced.resting)
        assert paced.wait_ms is not None
        paced.note_time(now_ms + paced.wait_ms)
        assert paced.resting is not resting[-1]
    assert sum(resting) == len(resting) * REST_PERCENT_STEP // 100


def test_publishers_do_not_rest_when_no_backup_is_behind() -> None:
    course = Course(written=80 * MIB, read=20 * MIB, behind=1024 * MIB)
    for _ in range(5):
        course.look()
    course.pacing.look(None)
    assert course.pacing.rest_percent == 0 and not course.pacing.resting
