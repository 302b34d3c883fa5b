"""Stories about forced promotions: what a person may do when too many primaries are gone, and what becomes of the
rest."""

from __future__ import annotations

import pytest

from pandomq.ids import NodeName
from pandomq.replica.effects import Alarm, AlarmKind, ChangeEnded
from pandomq.replica.limits import PROBE_MS
from pandomq.replica.roles.transitions import Role
from tests.unit.replica.world import Node, World


def promote(world: World, name: str, dead: str, epoch_id: str = "first") -> ChangeEnded:
    """Asks for it, waits for the answer, and gives it."""
    node = world[name]
    node.replica.promote([NodeName(other) for other in dead], epoch_id)
    node.do_effects()
    for _ in range(PROBE_MS // 20 + 5):
        for effect in node.take_told(ChangeEnded):
            assert isinstance(effect, ChangeEnded)
            return effect
        world.advance(20)
    raise AssertionError("no answer")


def epoch(node: Node) -> tuple[int, str]:
    view = node.replica.view()
    return view.epoch, view.epoch_id


def test_the_last_of_two_goes_on_when_a_person_says_so() -> None:
    world = World("ab")
    world.elect("a").propose(b"one")
    world.settle()
    world["a"].crash()
    world.advance(5_000)
    assert world.roots == []
    assert promote(world, "b", "a").done
    assert world.elect().name == "b"
    assert epoch(world["b"]) == (1, "first")
    world["b"].propose(b"two")
    world.settle()
    assert world.committed("b") == [b"one", b"two"]


def test_the_dead_come_back_as_learners_and_their_surplus_is_set_aside() -> None:
    world = World("abc")
    root = world.elect("a")
    world.isolate("a", "b")
    root.propose(b"surplus")
    world.settle()
    assert world.committed("a") == [b"surplus"]
    world["a"].crash()
    world["b"].crash()
    world.heal()
    world.advance(3_000)
    assert promote(world, "c", "ab").done
    world.elect("c").propose(b"new")
    world["a"].start()
    world["b"].start()
    world.advance(5_000)
    assert world["a"].plays(Role.LEARNER) and world["b"].plays(Role.LEARNER)
    assert world.committed("a") == world.committed("b") == world.committed("c") == [b"new"]
    for name in "ab":
        kept = [entry.payload for part in world[name].store.durable.aside for entry in part]
        assert b"surplus" in kept


def test_the_removed_can_be_made_members_again() -> None:
    world = World("abc")
    world.elect("a")
    world["a"].crash()
    world["b"].crash()
    world.advance(2_000)
    assert promote(world, "c", "ab").done
    root = world.elect("c")
    world["a"].start()
    world["b"].start()
    world.advance(3_000)
    root.replica.change_members(World.members("abc"))
    root.do_effects()
    world.advance(3_000)
    assert all(world[name].plays(Role.BACKUP) for name in "ab")
    root.propose(b"all")
    world.settle()
    assert world.committed("a") == [b"all"]


def all_in_doubt() -> World:
    """The power went, and no store was synced."""
    world = World("abc")
    world.elect("a").propose(b"one")
    world.settle()
    for node in world.nodes.values():
        node.crash()
        node.store.doubtful = True
    for node in world.nodes.values():
        node.start()
        node.store.doubtful = False
    world.advance(5_000)
    assert world.roots == [] and all(node.plays(Role.LEARNER) for node in world.nodes.values())
    return world


def test_if_all_are_in_doubt_a_person_says_whose_store_holds() -> None:
    world = all_in_doubt()
    assert promote(world, "c", "ab").done
    root = world.elect("c")
    world.advance(3_000)
    root.replica.change_members(World.members("abc"))
    root.do_effects()
    world.advance(3_000)
    assert all(world[name].plays(Role.BACKUP) for name in "ab")
    root.propose(b"two")
    world.settle()
    assert world.committed("a") == [b"one", b"two"]


def test_one_in_doubt_with_an_older_log_is_not_promoted() -> None:
    world = World("abc")
    root = world.elect("a")
    world["c"].crash()
    root.propose(b"newer")
    world.settle()
    for name in "abc":
        if name != "c":
            world[name].crash()
        world[name].store.doubtful = True
    for name in "abc":
        world[name].start()
    world.advance(2_000)
    assert not promote(world, "c", "ab").done


def test_survivors_elect_the_promoted_one_by_the_new_set() -> None:
    world = World("abcde")
    world.elect("a").propose(b"one")
    world.settle()
    for name in "abc":
        world[name].crash()
    world.advance(3_000)
    assert promote(world, "d", "abc").done
    assert world.elect().name == "d"
    world["d"].propose(b"two")
    world.settle()
    assert world.committed("e")[-1:] == world.committed("d")[-1:] == [b"two"]


def test_it_is_refused_if_one_of_the_dead_answers() -> None:
    world = World("abcde")
    root = world.elect("a")
    for name in "cd":
        world[name].crash()
    root.crash()
    world.advance(2_000)
    answer = promote(world, "b", "acde")
    assert not answer.done and "e is not dead" in answer.text


def test_it_is_refused_while_a_root_is_heard() -> None:
    world = World("abc")
    world.elect("a")
    assert not promote(world, "b", "ac").done
    assert not promote(world, "a", "bc").done


def test_it_is_refused_if_a_survivor_has_a_newer_log() -> None:
    world = World("abcde")
    root = world.elect("a")
    world.isolate("e")
    root.propose(b"only on d")
    world.settle()
    for name in "abc":
        world[name].crash()
    world.heal()
    world.advance(2_000)
    answer = promote(world, "e", "abc")
    assert not answer.done and "d has a newer log" in answer.text
    assert promote(world, "d", "abc").done


@pytest.mark.parametrize(("name", "dead", "epoch_id"), [("b", "z", "x"), ("b", "ab", "x"), ("b", "a", "")])
def test_what_cannot_be_meant_is_refused(name: str, dead: str, epoch_id: str) -> None:
    world = World("ab")
    world.elect("a").crash()
    world.advance(2_000)
    assert not promote(world, name, dead, epoch_id).done


def test_an_empty_broker_is_not_promoted() -> None:
    world = World("ab")
    world.elect("a").crash()
    world["b"].crash()
    world["b"].store.wipe()
    world["b"].start()
    world.advance(2_000)
    assert not promote(world, "b", "a").done


def test_two_sides_that_were_both_promoted_never_merge_by_themselves() -> None:
    world = World("ab")
    world.elect("a")
    world["b"].crash()
    world["b"].start()
    world.isolate("a")
    world["a"].crash()
    world["a"].start()
    world.advance(3_000)
    assert promote(world, "a", "b", "left").done
    assert promote(world, "b", "a", "right").done
    world.elect("a")
    world["a"].propose(b"left")
    world["b"].propose(b"right")
    world.settle()
    world.heal()
    world.advance(5_000)
    assert world.committed("a") == [b"left"] and world.committed("b") == [b"right"]
    for node in world.nodes.values():
        assert split_alarms(node) == [True]
    # Until a person gives one of them up.
    world["b"].crash()
    world["b"].store.wipe()
    world["b"].start()
    world.advance(5_000)
    assert split_alarms(world["a"]) == [True, False]
    assert world.committed("b") == [b"left"]


def split_alarms(node: Node) -> list[bool]:
    """Raised and cleared, in order."""
    return [one.raised for one in node.told if isinstance(one, Alarm) and one.kind is AlarmKind.SPLIT_EPOCHS]


def test_a_higher_epoch_wins_and_the_other_side_keeps_what_it_wrote_aside() -> None:
    """Both sides of a split are promoted, and then the left one once more: on healing the right one follows it."""
    world = World("abc")
    world.elect("a")
    world["b"].crash()
    world.isolate("a")
    world["a"].crash()
    world["a"].start()
    world.advance(3_000)
    assert promote(world, "a", "bc", "left").done
    assert promote(world, "c", "ab", "right").done
    world.elect("c").propose(b"right")
    world.elect("a").propose(b"left")
    world.settle()
    world["a"].disk_works = False
    world["a"].replica.resign("for the sake of the story")
    world["a"].do_effects()
    world["a"].replica.promote([], "left again")
    world["a"].do_effects()
    world["a"].store.stalled_since_ms = world.now_ms - 10_000
    world.advance(PROBE_MS + 100)
    world["a"].disk_works = True
    world.elect("a")
    assert epoch(world["a"]) == (2, "left again")
    world.heal()
    world.advance(5_000)
    assert epoch(world["c"]) == (2, "left again")
    assert world.committed("c") == world.committed("a") == [b"left"]
    kept = [entry.payload for part in world["c"].store.durable.aside for entry in part]
    assert b"right" in kept


def test_the_old_root_that_was_only_cut_off_follows_the_new_epoch() -> None:
    """A person was wrong: the dead live, and have gone on. Their epoch loses, and what they wrote is kept."""
    world = World("abc")
    root = world.elect("a")
    world.isolate("c")
    root.propose(b"old 1", b"old 2")
    world.advance(3_000)
    assert promote(world, "c", "ab").done
    world.elect("c").propose(b"new")
    world.settle()
    assert len(world.roots) == 2
    world.heal()
    world.advance(5_000)
    assert [node.name for node in world.roots] == ["c"]
    assert [world.committed(name) for name in "abc"] == [[b"new"]] * 3
    kept = [entry.payload for part in world["a"].store.durable.aside for entry in part]
    assert b"old 1" in kept and b"old 2" in kept


def test_survivors_whose_log_is_overtaken_still_elect_the_new_epochs_root() -> None:
    """c, who has missed everything, is promoted, and nobody is declared dead; then it restarts."""
    world = World("abc")
    root = world.elect("a")
    world.isolate("c")
    root.propose(b"old")
    world.advance(3_000)
    assert promote(world, "c", "").done
    world.heal()
    world.elect("c")
    world.advance(2_000)
    assert [world.committed(name) for name in "abc"] == [[]] * 3
    for name in "abc":
        world[name].crash()
    for name in "abc":
        world[name].start()
    world.elect().propose(b"new")
    world.advance(1_000)
    assert [world.committed(name) for name in "abc"] == [[b"new"]] * 3
