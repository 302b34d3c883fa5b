"""Quorums, commit indexes and joint sets against second definitions that are slow and obvious."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pandomq.ids import NodeName
from pandomq.replica.limits import MEMBERS_MAX
from pandomq.replica.members import quorum
from pandomq.replica.members.membership import Member, Membership

NAMES = [NodeName(name) for name in "abcdefgh"]
sizes = st.integers(1, MEMBERS_MAX)
name_sets = st.lists(st.sampled_from(NAMES), min_size=1, max_size=7, unique=True)
indexes = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9))


def membership(voters: list[NodeName], incoming: list[NodeName]) -> Membership:
    return Membership(tuple(map(Member, voters)), tuple(map(Member, incoming)))


@given(sizes)
def test_more_than_half_elects_and_at_least_half_keeps(count: int) -> None:
    assert quorum.elect_need(count) == min(need for need in range(count + 1) if need > count / 2)
    assert quorum.half(count) == min(need for need in range(count + 1) if need >= count / 2)


@given(sizes, st.integers(1, MEMBERS_MAX))
def test_a_commit_needs_half_and_as_many_copies_as_are_asked_for(count: int, min_copies: int) -> None:
    need = quorum.commit_need(count, min_copies)
    assert need >= count / 2 and need <= count
    assert need == max(quorum.half(count), min(min_copies, count))


@pytest.mark.proves("R5")
@given(sizes, st.integers(1, MEMBERS_MAX))
def test_a_quorum_that_elects_shares_a_member_with_each_that_elects_or_commits(count: int, min_copies: int) -> None:
    for need in (quorum.elect_need(count), quorum.commit_need(count, min_copies), quorum.half(count)):
        assert quorum.elect_need(count) + need > count


@given(st.lists(st.integers(0, 20), max_size=9), st.integers(1, 9))
def test_reached_by_is_the_highest_value_that_enough_have_reached(values: list[int], need: int) -> None:
    reached = [value for value in values if sum(other >= value for other in values) >= need]
    assert quorum.reached_by(values, need) == max(reached, default=-1)


@given(name_sets, name_sets | st.just([]), st.sets(st.sampled_from(NAMES)))
def test_both_sets_elect(voters: list[NodeName], incoming: list[NodeName], granted: set[NodeName]) -> None:
    sets = [voters, incoming] if incoming else [voters]
    obvious = all(len(granted & set(names)) * 2 > len(names) for names in sets)
    assert membership(voters, incoming).has_elected(granted) == obvious


@given(name_sets, name_sets | st.just([]), indexes, st.integers(1, 4))
def test_a_commit_index_is_the_last_that_some_group_of_each_set_holds(
    voters: list[NodeName], incoming: list[NodeName], values: dict[NodeName, int], min_copies: int
) -> None:
    def holds(names: list[NodeName], index: int) -> bool:
        need = quorum.commit_need(len(names), min_copies)
        groups = combinations(names, need)
        return any(all(values.get(name, -1) >= index for name in group) for group in groups)

    sets = [voters, incoming] if incoming else [voters]
    obvious = max((index for index in range(10) if all(holds(names, index) for names in sets)), default=-1)
    reached = membership(voters, incoming).reached(values, lambda count: quorum.commit_need(count, min_copies))
    assert reached == obvious


@given(name_sets, name_sets)
def test_old_joint_and_new_sets_never_decide_past_each_other(old: list[NodeName], new: list[NodeName]) -> None:
    """Each quorum that commits under one of the three shares a member with each quorum that elects under the one before
    or after."""
    before, joint, after = membership(old, []), membership(old, new), membership(new, [])
    everybody = sorted({*old, *new})
    groups = [set(group) for size in range(len(everybody) + 1) for group in combinations(everybody, size)]
    if len(groups) > 128:
        groups = groups[:64] + groups[-64:]
    for first, second in ((before, joint), (joint, after), (joint, joint)):
        electing = [group for group in groups if first.has_elected(group)]
        committing = [
            group for group in groups if second.reached(dict.fromkeys(group, 1), lambda count: quorum.half(count)) == 1
        ]
        assert all(elected & committed for elected in electing for committed in committing)


@given(name_sets, name_sets)
def test_a_change_goes_through_both(old: list[NodeName], new: list[NodeName]) -> None:
    before = membership(old, [])
    joint = before.toward(tuple(map(Member, new)))
    assert joint.joint and joint.names == {*old, *new} and joint.settled() == membership(new, [])
