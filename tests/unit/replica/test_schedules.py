"""Any order of small things, drawn by hypothesis: one root a term, committed logs agree, nothing committed is lost,
never two that serve; and when the faults end the cluster works again.
"""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pandomq.replica.log import tail
from tests.unit.replica.schedule import Action, Kind, Schedule
from tests.unit.replica.world import World

WEIGHTS = {
    Kind.DELIVER: 14,
    Kind.DISK: 12,
    Kind.SETTLE: 3,
    Kind.ADVANCE: 2,
    Kind.TIME: 3,
    Kind.PROPOSE: 4,
    Kind.CRASH: 2,
    Kind.START: 2,
}
FAULTS = [kind for kind in Kind if kind not in (Kind.CHANGE, Kind.WIPE, Kind.PROMOTE)]


def actions(kinds: Sequence[Kind]) -> st.SearchStrategy[list[Action]]:
    weighted = [kind for kind in kinds for _ in range(WEIGHTS.get(kind, 1))]
    return st.lists(
        st.tuples(st.sampled_from(weighted), st.integers(0, 6), st.integers(0, 1_000)), min_size=20, max_size=160
    )


def run(names: str, drawn: list[Action], *, voters: str | None = None, elected: bool = True) -> World:
    """Tells a schedule, ends the faults, and sees that the cluster comes to one log again."""
    with mock.patch.object(tail, "TAIL_ENTRIES_MAX", 3):
        world = World(names, voters=voters)
        if elected:
            world.elect()
        schedule = Schedule(world)
        schedule.run(drawn)
        schedule.end()
        root = world.elect()
        root.propose(b"last")
        world.advance(3_000)
        for node in world.nodes.values():
            assert world.committed(node.name) == world.committed(root.name), world.roles()
        assert world.committed(root.name)[-1] == b"last"
    return world


LIGHT = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@pytest.mark.proves("R8", "R9")
@given(st.sampled_from(["a", "ab", "abc", "abcd", "abcde"]), actions(FAULTS), st.booleans())
@LIGHT
def test_faults_in_any_order(names: str, drawn: list[Action], elected: bool) -> None:
    run(names, drawn, elected=elected)


@given(st.sampled_from(["abc", "abcd", "abcde"]), actions([*FAULTS, Kind.WIPE, Kind.WIPE]))
@LIGHT
def test_disks_are_lost_one_at_a_time(names: str, drawn: list[Action]) -> None:
    run(names, drawn)


@given(st.sampled_from(["a", "ab", "abc", "abcd", "abcde"]), actions([*FAULTS, Kind.CHANGE, Kind.CHANGE]))
@LIGHT
def test_members_change_meanwhile(voters: str, drawn: list[Action]) -> None:
    run("abcde", drawn, voters=voters)


@given(st.sampled_from(["ab", "abc", "abcd"]), actions([*FAULTS, *[Kind.PROMOTE, Kind.ISOLATE, Kind.ADVANCE] * 4]))
@LIGHT
def test_arbitrary_forced_promotions_keep_the_laws_of_each_epoch(names: str, drawn: list[Action]) -> None:
    """Each epoch keeps the laws for itself; and if there is one highest, all end in it with one log."""
    with mock.patch.object(tail, "TAIL_ENTRIES_MAX", 3):
        world = World(names)
        world.elect()
        schedule = Schedule(world)
        schedule.run(drawn)
        schedule.end()
        world.advance(5_000)
        highest = max(node.replica.view().epoch for node in world.nodes.values())
        views = [node.replica.view() for node in world.nodes.values()]
        if len({view.epoch_id for view in views if view.epoch == highest}) == 1:
            root = world.elect()
            world.advance(3_000)
            assert {node.replica.view().epoch for node in world.nodes.values()} == {highest}
            for node in world.nodes.values():
                assert world.committed(node.name) == world.committed(root.name), world.roles()
