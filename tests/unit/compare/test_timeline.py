"""Pauses between confirms, compared with the obvious definition."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tools.compare.clusters.timeline import Timeline


def timeline_of(moments: list[int], break_ns_max: int = 100) -> Timeline:
    timeline = Timeline(break_ns_max)
    for moment in moments:
        timeline.confirm(moment, 1)
    return timeline


def test_a_pause_is_counted_from_the_confirm_before_the_fault() -> None:
    timeline = timeline_of([10, 20, 30, 400, 410])
    pause = timeline.longest_pause(since_ns=35, until_ns=500)
    assert (pause.begun_ns, pause.ended_ns, pause.over) == (30, 400, True)
    assert pause.seconds == 370e-9


def test_a_pause_that_does_not_end_is_as_long_as_it_was_watched() -> None:
    pause = timeline_of([10, 20]).longest_pause(since_ns=25, until_ns=5000)
    assert (pause.begun_ns, pause.ended_ns, pause.over) == (20, 5000, False)


def test_a_pause_that_ended_before_does_not_count() -> None:
    assert timeline_of([10, 900, 910, 950]).longest_pause(since_ns=905, until_ns=960).ended_ns == 950


def test_no_confirm_at_all_is_one_pause() -> None:
    pause = timeline_of([]).longest_pause(since_ns=100, until_ns=200)
    assert (pause.begun_ns, pause.ended_ns, pause.over) == (100, 200, False)


@given(st.lists(st.integers(0, 1000), max_size=30).map(sorted), st.integers(0, 1000), st.integers(0, 1000))
def test_the_longest_pause_is_the_longest_stretch_without_a_confirm(moments: list[int], one: int, other: int) -> None:
    since, until = sorted((one, other))
    before = [moment for moment in moments if moment < since]
    stretch = [before[-1] if before else since, *(moment for moment in moments if since <= moment <= until), until]
    pause = timeline_of(moments).longest_pause(since, until)
    assert pause.ended_ns - pause.begun_ns == max(b - a for a, b in pairwise(stretch))


@given(st.lists(st.integers(0, 1000), max_size=30).map(sorted), st.integers(0, 1000), st.integers(0, 1000))
def test_confirms_are_counted_between_moments(moments: list[int], one: int, other: int) -> None:
    since, until = sorted((one, other))
    counted = timeline_of(moments).confirmed_between(since, until)
    assert counted == sum(since < moment <= until for moment in moments)


def test_confirms_flow_until_there_is_a_break() -> None:
    timeline = timeline_of([0, 50, 100, 300, 350], break_ns_max=100)
    assert timeline.flowing_since(380) == 300
    assert timeline.flowing_since(451) is None
    assert timeline_of([]).flowing_since(10) is None


def test_the_events_after_a_moment_are_listed() -> None:
    timeline = timeline_of([])
    timeline.tell(1_000_000_000, "before")
    timeline.tell(3_500_000_000, "n1 is lost")
    assert timeline.told_since(2_000_000_000) == ["+1.500 s n1 is lost"]
