"""What is said of worlds that executors ran."""

from __future__ import annotations

import pytest

from pandomq.pipeline.simulate import MixedVersions, World, summarize
from pandomq.sim.campaign import Job
from pandomq.sim.outcome import Outcome


def world(seed: int, broken: str = "", version: str = "1, fast kernel") -> World:
    outcome = Outcome(seed, "hash", 100, 10, 2, {"kill": 3, "power": 1}, broken, "order" if broken else "", ("a line",))
    return World(outcome, 70, version)


def test_all_went_well() -> None:
    summary = summarize([world(2), world(1)], Job(0, 3), 4.0)
    assert summary.good and summary.verdict == "no promise was broken"
    assert summary.facts["schedules"] == 2 and summary.facts["seeds"] == "1..2"
    assert summary.facts["schedules a second"] == 0.5
    assert summary.tables[0].rows == [("kill", 6), ("power", 2)]


def test_a_broken_promise_is_named_with_the_command_that_shows_it() -> None:
    summary = summarize([world(1), world(7, "5 came before 4")], Job(0, 3), 1.0)
    assert not summary.good and summary.verdict == "1 of 2 schedules broke a promise"
    assert summary.tables[1].rows == [(7, "order", "5 came before 4", "pandomq sim --nodes 3 --seed 7 --explain")]
    assert summary.tables[2].title == "The story of seed 7"


def test_executors_with_different_code() -> None:
    with pytest.raises(MixedVersions, match="1, fast kernel; 2, fast kernel"):
        summarize([world(1), world(2, version="2, fast kernel")], Job(0), 1.0)
