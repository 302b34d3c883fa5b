"""Stories about changes of members: by joint consensus, one at a time, newcomers first as learners."""

from __future__ import annotations

import pytest

from pandomq.replica.effects import ChangeEnded, MembersChanged
from pandomq.replica.limits import CHANGE_MS, GREETING_MS
from pandomq.replica.protocol.entries import Members, decode_entry
from pandomq.replica.roles.transitions import Role
from tests.unit.replica.world import Node, World


def change(node: Node, names: str) -> None:
    node.replica.change_members(World.members(names))
    node.do_effects()


def ended(node: Node) -> list[bool]:
    return [effect.done for effect in node.take_told(ChangeEnded) if isinstance(effect, ChangeEnded)]


def voters(node: Node) -> str:
    membership = node.replica.view().membership
    return "" if membership is None else "+".join("".join(names) for names in membership.sets)


def sets_in_log(node: Node) -> list[str]:
    entries = [decode_entry(entry.payload) for entry in node.store.durable.entries]
    return [
        "+".join("".join(names) for names in entry.membership.sets) for entry in entries if isinstance(entry, Members)
    ]


def test_a_newcomer_catches_up_as_learner_and_then_votes() -> None:
    world = World("abcd", voters="abc")
    root = world.elect("a")
    root.propose(b"one")
    world.advance(500)
    assert world["d"].plays(Role.LEARNER)
    change(root, "abcd")
    world.advance(2_000)
    assert ended(root) == [True]
    assert world["d"].plays(Role.BACKUP)
    assert world.committed("d") == [b"one"]
    assert sets_in_log(root) == ["abc", "abc+abcd", "abcd"]


def test_a_new_root_reaches_its_learners_at_once() -> None:
    world = World("abcd", voters="abc")
    first = world.elect("a")
    world.advance(5_000)
    first.crash()
    heir = world.elect_among("bc")
    world.advance(100)
    assert world["d"].replica.root == heir.name


def test_a_removed_primary_no_longer_votes() -> None:
    world = World("abc")
    root = world.elect("a")
    change(root, "ab")
    world.advance(1_000)
    assert ended(root) == [True]
    assert world["c"].plays(Role.LEARNER)
    root.crash()
    world.advance(5_000)
    assert world.roots == [], "b is half of two, and c has no vote"


def test_a_root_that_removes_itself_steps_down_when_that_is_committed() -> None:
    world = World("abc")
    root = world.elect("a")
    change(root, "bc")
    world.advance(3_000)
    assert root.plays(Role.LEARNER)
    assert world.elect().name in "bc"
    assert voters(world["b"]) == "bc"


def test_one_change_at_a_time() -> None:
    world = World("abcd", voters="abc")
    root = world.elect("a")
    for node in world.nodes.values():
        node.disk_works = False
    change(root, "ab")
    change(root, "abcd")
    assert ended(root) == [False]


def test_a_newcomer_that_never_comes_is_given_up() -> None:
    world = World("abc")
    root = world.elect("a")
    change(root, "abcz")
    world.advance(CHANGE_MS + 1_000)
    assert ended(root) == [False]
    assert voters(root) == "abc"


@pytest.mark.parametrize(("names", "why"), [("", "at least one"), ("aab", "named twice")])
def test_sets_that_cannot_be(names: str, why: str) -> None:
    world = World("abc")
    root = world.elect("a")
    change(root, names)
    (refusal,) = root.take_told(ChangeEnded)
    assert isinstance(refusal, ChangeEnded) and not refusal.done and why in refusal.text


def test_only_a_root_changes_members() -> None:
    world = World("abc")
    world.elect("a")
    change(world["b"], "ab")
    assert ended(world["b"]) == [False]


@pytest.mark.parametrize(("before", "after"), [("abcde", "abcd"), ("abcd", "abcde"), ("abc", "ade"), ("a", "abc")])
@pytest.mark.parametrize("step", range(10))
def test_the_root_dies_at_any_step_of_a_change_and_the_next_one_finishes_or_forgets_it(
    before: str, after: str, step: int
) -> None:
    world = World("abcde", voters=before)
    root = world.elect("a")
    world.advance(1_000)
    root.propose(b"one")
    world.settle()
    change(root, after)
    for _ in range(step):
        for node in world.nodes.values():
            node.disk_step() or node.receive()
    root.crash()
    world.advance(3_000)
    root.start()
    root = world.elect()
    world.advance(3_000)
    assert voters(root) in (before, after)
    root.propose(b"two")
    world.settle()
    assert world.committed(root.name) == [b"one", b"two"]


@pytest.mark.parametrize(("before", "after"), [("abcde", "abcd"), ("abcd", "abcde")])
@pytest.mark.parametrize("alone", ["a", "ab", "cd", "e"])
@pytest.mark.parametrize("step", [1, 3, 5])
def test_a_partition_at_any_step_of_a_change(before: str, after: str, alone: str, step: int) -> None:
    world = World("abcde", voters=before)
    root = world.elect("a")
    world.advance(1_000)
    change(root, after)
    for _ in range(step):
        for node in world.nodes.values():
            node.disk_step() or node.receive()
    world.isolate(*alone)
    world.advance(4_000)
    for node in world.roots:
        node.propose(b"in the partition")
    world.advance(1_000)
    world.heal()
    world.advance(4_000)
    root = world.elect()
    root.propose(b"after it")
    world.advance(1_000)
    assert voters(root) in (before, after)
    assert world.committed(root.name)[-1] == b"after it"


def test_a_change_that_is_cut_off_is_not_in_force() -> None:
    world = World("abcde", voters="abc")
    root = world.elect("a")
    world.advance(1_500)
    world.isolate("a", "d", "e")
    change(root, "ade")
    world.settle()
    assert voters(root) == "abc+ade"
    other = world.elect_among("bc")
    world.heal()
    world.advance(3_000)
    assert [voters(world[name]) for name in "abc"] == ["abc"] * 3
    assert world.roots == [other]


def test_members_survive_a_restart() -> None:
    world = World("abcd", voters="abc")
    change(world.elect("a"), "abcd")
    world.advance(2_000)
    for name in "abcd":
        world[name].crash()
    for name in "abcd":
        world[name].start()
        assert voters(world[name]) == "abcd"
        assert world[name].take_told(MembersChanged) != []


def test_a_secondary_gets_the_log_and_has_no_vote() -> None:
    world = World("abc")
    root = world.elect("a")
    world.add("s", observer=True).start()
    root.propose(b"one")
    world.advance(500)
    assert world["s"].plays(Role.OBSERVER)
    assert world.committed("s") == [b"one"]
    world["b"].crash()
    world["c"].crash()
    world.advance(3_000)
    assert world.roots == [], "a and s are not half of three primaries"


def test_a_change_of_members_at_a_deposed_root_is_reported_as_failed() -> None:
    world = World("abcd", voters="abc")
    root = world.elect("a")
    change(root, "abcz")
    world.isolate("a")
    world.advance(2_000)
    assert ended(root) == [False]


def test_a_learner_forgets_a_root_without_contact() -> None:
    world = World("abcd", voters="abc")
    world.elect("a")
    world.advance(GREETING_MS + 200)
    assert world["d"].replica.root == "a"
    world.isolate("d")
    world.advance(2_000)
    assert world["d"].replica.root is None


def test_the_members_in_the_log_hold_though_their_record_was_lost() -> None:
    world = World("abcd", voters="abc")
    root = world.elect("a")
    root.propose(b"one")
    world.advance(500)
    backup = world["b"]
    before = backup.store.durable.state
    change(root, "abcd")
    world.advance(500)
    assert voters(backup) == "abcd"
    for node in world.nodes.values():
        node.crash()
    # The entry got to the disk, and the state that was saved along with it did not.
    backup.store.durable.state = before
    backup.store.crash()
    backup.start()
    world.advance(20)
    assert voters(backup) == "abcd"


def test_a_primary_that_is_being_removed_may_stand_until_that_is_committed() -> None:
    world = World("ab")
    root = world.elect("a")
    root.propose(b"one")
    world.advance(500)
    change(root, "b")
    world.advance(3_000)
    assert world["b"].plays(Role.ROOT) and voters(world["b"]) == "b"
    assert world["a"].plays(Role.LEARNER)
