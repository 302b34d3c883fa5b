"""Forced promotions that are refused, because somebody who answers, or does not, stands in the way."""

from __future__ import annotations

import pytest

from pandomq.ids import NodeName
from pandomq.replica.effects import ChangeEnded
from pandomq.replica.limits import PROBE_MS
from tests.unit.replica.promoting import epoch, promote
from tests.unit.replica.world import World


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


def test_a_promotion_is_refused_if_a_broker_named_as_dead_answers() -> None:
    world = World("abcde")
    root = world.elect("a")
    for name in "cd":
        world[name].crash()
    root.crash()
    world.advance(2_000)
    answer = promote(world, "b", "acde")
    assert not answer.done and "e is not dead" in answer.text


def test_a_promotion_is_refused_while_a_root_is_in_contact() -> None:
    world = World("abc")
    world.elect("a")
    assert not promote(world, "b", "ac").done
    assert not promote(world, "a", "bc").done


def test_a_promotion_is_refused_if_a_survivor_has_a_newer_log() -> None:
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
def test_a_promotion_with_contradictory_arguments_is_refused(name: str, dead: str, epoch_id: str) -> None:
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


def test_a_promotion_is_refused_if_a_surviving_primary_does_not_answer() -> None:
    """It may have a newer log, or be promoted itself."""
    world = World("abcde")
    world.elect("a")
    for name in "abc":
        world[name].crash()
    world.isolate("e")
    world.advance(3_000)
    answer = promote(world, "d", "abc")
    assert not answer.done and "no response from e" in answer.text
    assert promote(world, "d", "abce").done


def test_a_promotion_is_refused_if_a_dead_broker_comes_back_before_the_epoch_begins() -> None:
    world = World("abcd")
    world.elect("a")
    for name in "abc":
        world[name].crash()
    world.advance(3_000)
    world["d"].replica.promote([NodeName(name) for name in "abc"], "too late")
    world["d"].do_effects()
    world.advance(PROBE_MS // 2)
    world["b"].start()
    world.advance(PROBE_MS)
    (answer,) = world["d"].take_told(ChangeEnded)
    assert isinstance(answer, ChangeEnded) and not answer.done and "b is not dead" in answer.text
    assert epoch(world["d"]) == (0, "")


def test_of_two_promotions_of_the_same_survivors_the_younger_one_is_refused() -> None:
    """Each would begin an epoch of the same number, in which the other one is needed and does not follow."""
    world = World("abcde")
    world.elect("a")
    for name in "abc":
        world[name].crash()
    world.advance(3_000)
    world["d"].replica.promote([NodeName(name) for name in "abc"], "first")
    world["d"].do_effects()
    world.advance(PROBE_MS // 5)
    answer = promote(world, "e", "abc", "second")
    assert not answer.done and "d is being promoted" in answer.text
    assert world.elect().name == "d"
    assert epoch(world["d"]) == epoch(world["e"]) == (1, "first")
