"""The simulator's checker of delayed and expiring messages, and the delays that it reports."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pandomq.sim.checkers.on_time import LATE_MS, OnTime
from pandomq.sim.checkers.root_time import Moment
from pandomq.sim.ledger import BrokenPromise, Delivery, SentMessage, WorldLedger

CABLE: Any = SimpleNamespace(proxied=False)


class RootClock:
    """The clock of one root that nothing disturbs; None while it is about to stop."""

    def __init__(self) -> None:
        self.at_ms: int | None = 0

    def now(self, cable: object) -> Moment | None:
        return None if self.at_ms is None else Moment(1, self.at_ms)

    def undisturbed_ms(self, life: int) -> int:
        return 100_000


class Course:
    def __init__(self) -> None:
        self.clock = RootClock()
        self.checker = OnTime(WorldLedger(), self.clock)  # type: ignore[arg-type]
        self.checker.ready_ms["graves"] = 0
        self._number = 0

    def send(self, wait_ms: int, at_ms: int | None) -> SentMessage:
        self.clock.at_ms = at_ms
        self._number += 1
        message = SentMessage(1, self._number, ("mortal",), True, 0, None, 1, 0)
        self.checker.expect(message, "graves", wait_ms, CABLE, in_line="mortal")
        return message

    def confirm(self, message: SentMessage, at_ms: int) -> None:
        self.clock.at_ms = at_ms
        self.checker.confirmed(message, SimpleNamespace())  # type: ignore[arg-type]

    def deliver(self, message: SentMessage, at_ms: int) -> None:
        self.clock.at_ms = at_ms
        machine: Any = SimpleNamespace(world_ms=100_000)
        self.checker.emitted(Delivery(message, "graves", False, False, CABLE), machine)


def test_a_dead_letter_that_comes_long_after_its_time_is_late() -> None:
    course = Course()
    message = course.send(100, at_ms=1_000)
    course.confirm(message, at_ms=1_010)
    with pytest.raises(BrokenPromise, match="after its time"):
        course.deliver(message, at_ms=1_110 + LATE_MS + 1)


@pytest.mark.parametrize("sent_ms", [None, 100])
def test_a_message_waits_for_one_before_it_whose_time_of_publishing_is_not_known(sent_ms: int | None) -> None:
    """The first message was sent to a broker that was about to stop, or was paused for a second: it was published
    later than it was sent, and no client received a confirm."""
    course = Course()
    course.send(1_200, at_ms=sent_ms)
    second = course.send(0, at_ms=1_500)
    course.confirm(second, at_ms=1_510)
    course.deliver(second, at_ms=1_100 + 1_200)


def test_a_message_does_not_wait_for_those_after_it() -> None:
    course = Course()
    first = course.send(0, at_ms=1_000)
    course.send(1_200, at_ms=1_001)
    course.confirm(first, at_ms=1_010)
    with pytest.raises(BrokenPromise, match="after its time"):
        course.deliver(first, at_ms=1_010 + LATE_MS + 1)
