"""Stories about who becomes root, who does not, and who stops being it."""

from __future__ import annotations

import pytest

from pandomq.ids import NodeName
from pandomq.replica.effects import SteppedDown
from pandomq.replica.members.membership import Member
from pandomq.replica.record import first_state
from pandomq.replica.roles.transitions import Role
from tests.unit.replica.world import World


@pytest.mark.proves("R5", "R8")
def test_three_brokers_elect_one_and_when_it_dies_another() -> None:
    world = World("abc")
    root = world.elect()
    root.propose(b"one")
    world.settle()
    root.crash()
    successor = world.elect()
    assert successor is not root
    assert world.committed(successor.name) == [b"one"]


@pytest.mark.proves("R8")
def test_a_process_that_dies_is_followed_within_a_quarter_of_a_second() -> None:
    world = World("abc")
    world.elect().crash()
    died_ms = world.now_ms
    world.elect()
    assert world.now_ms - died_ms <= 250


def test_a_machine_that_falls_silent_is_followed_within_two_leases() -> None:
    world = World("abc")
    root = world.elect()
    world.isolate(root.name)
    silent_ms = world.now_ms
    while len([node for node in world.roots if node is not root]) == 0:
        world.advance(20)
    assert world.now_ms - silent_ms <= 2 * world.settings.lease_ms


@pytest.mark.proves("R4")
def test_of_equals_the_one_that_has_run_longest_becomes_root() -> None:
    world = World("abc")
    world.elect("a")
    for name in "cab":
        world[name].crash()
        world.advance(3_000)
        world[name].start()
        world.advance(3_000)
    # c has run longest by now, though by name it comes last.
    world.step_down()
    assert world.elect().name == "c"
    world["c"].crash()
    assert world.elect().name == "a"


@pytest.mark.proves("R4")
def test_seniority_refuses_no_vote() -> None:
    world = World("abc")
    world.elect("a")
    world.isolate("a", "c")
    world.advance(5_000)
    world["a"].crash()
    world.heal()
    # c has missed nothing, but cannot reach anybody; b, the younger one by name, is elected with c's vote.
    world.cut("a", "b")
    assert world.elect().name in "bc"


@pytest.mark.proves("R6")
def test_a_broker_that_recovers_answers_no_messages() -> None:
    world = World("abc")
    world["a"].crash()
    world["b"].crash()
    world["b"].up = True
    world["b"].replica = type(world["c"].replica)(NodeName("b"), world.settings, world["b"].store, world.chance)
    world.advance(5_000)
    assert world.roots == []
    assert world["b"].plays(Role.RECOVERING)


@pytest.mark.proves("R5")
def test_half_of_the_primaries_elect_no_root_until_one_comes_back() -> None:
    world = World("abcd")
    root = world.elect()
    root.crash()
    others = [node for node in world.nodes.values() if node is not root]
    others[0].crash()
    world.advance(10_000)
    assert world.roots == []
    others[0].start()
    assert world.elect() is not None


@pytest.mark.proves("R7")
def test_a_root_that_reaches_less_than_half_steps_down_and_reports_why() -> None:
    world = World("abc")
    root = world.elect()
    world.isolate(root.name)
    world.advance(world.settings.lease_ms)
    assert not root.plays(Role.ROOT)
    assert root.take_told(SteppedDown) == [SteppedDown("no contact to a quorum of the primaries within the lease")]


@pytest.mark.proves("R7")
def test_a_root_whose_links_end_steps_down_at_once() -> None:
    world = World("abc")
    root = world.elect()
    world.isolate(root.name, noticed=True)
    assert not root.plays(Role.ROOT)


def test_exactly_half_keeps_its_root() -> None:
    world = World("abcd")
    root = world.elect("a")
    world["c"].crash()
    world["d"].crash()
    root.propose(b"still")
    world.advance(5_000)
    assert root.plays(Role.ROOT) and root.replica.serving
    assert world.committed("a") == [b"still"]


def test_a_root_whose_disk_stalls_steps_down_and_another_is_elected() -> None:
    world = World("abc")
    root = world.elect()
    root.disk_works = False
    root.store.stalled_since_ms = world.now_ms
    root.propose(b"stuck")
    world.advance(world.settings.disk_stall_ms + 100)
    assert root.take_told(SteppedDown) == [SteppedDown("its disk does not respond")]
    assert world.elect() is not root
    # It does not stand while its disk stalls.
    world.advance(5_000)
    assert root.plays(Role.BACKUP)


def test_a_root_that_was_paused_past_its_lease_steps_down_before_anything_else() -> None:
    world = World("abc")
    root = world.elect("a")
    root.paused = True
    world.elect("b")
    world["b"].propose(b"new")
    world.settle()
    root.paused = False
    # Everything that came meanwhile waits in its inbox; time is told first.
    root.tick()
    assert not root.replica.serving
    assert root.plays(Role.BACKUP)


def test_a_backup_that_was_paused_causes_no_election() -> None:
    world = World("abc")
    root = world.elect("a")
    term = root.replica.view().term
    world["c"].paused = True
    world.advance(5_000)
    world["c"].paused = False
    world.advance(2_000)
    assert world.roots == [root] and root.replica.view().term == term


def test_a_broker_that_was_cut_off_and_comes_back_causes_no_election() -> None:
    world = World("abc")
    root = world.elect("a")
    term = root.replica.view().term
    world.isolate("c")
    world.advance(10_000)
    world.heal()
    world.advance(2_000)
    assert world.roots == [root] and root.replica.view().term == term


def test_a_broker_in_contact_with_the_root_refuses_its_vote_to_one_that_is_not() -> None:
    world = World("abc")
    root = world.elect("a")
    world.cut("a", "b")
    world.advance(10_000)
    assert world.roots == [root]


@pytest.mark.proves("R9")
def test_the_old_root_comes_back_as_backup_with_any_uncommitted_entries() -> None:
    world = World("abc")
    old = world.elect("a")
    world.isolate("a")
    old.propose(b"lost 1", b"lost 2")
    world.settle()
    new = world.elect("b")
    new.propose(b"kept")
    world.settle()
    world.heal()
    world.advance(2_000)
    assert old.plays(Role.BACKUP)
    assert world.log("a") == world.log("b") == [b"kept"]


def test_one_broker_elects_itself_at_once_and_commits_on_its_own_sync() -> None:
    world = World("a")
    world.settle()
    assert world["a"].replica.serving
    index = world["a"].propose(b"alone")
    assert world["a"].replica.commit_index < index
    world.settle()
    assert world["a"].replica.commit_index == index


def test_commit_on_two_then_one_is_wiped_and_the_other_dies_and_the_third_stands() -> None:
    world = World("abc")
    root = world.elect("a")
    world["c"].crash()
    root.propose(b"precious")
    world.settle()
    assert world.committed("a") == [b"precious"]
    world["b"].crash()
    world["b"].store.wipe()
    world.checkers.wiped |= {NodeName("b")}
    root.crash()
    world["b"].start()
    world["c"].start()
    world.advance(20_000)
    # c lacks the message, and b has forgotten it: nobody may be root before a is back.
    assert world.roots == []
    assert world["b"].plays(Role.LEARNER)
    world["a"].start()
    assert world.elect().name == "a"
    world.advance(2_000)
    assert world["b"].plays(Role.BACKUP)
    assert world.committed("c") == [b"precious"]


def test_an_empty_broker_is_admitted_and_counts_again() -> None:
    world = World("abc")
    world.elect("a").propose(b"one")
    world.settle()
    world["c"].crash()
    world["c"].store.wipe()
    world["c"].start()
    assert world["c"].plays(Role.LEARNER)
    world.advance(1_000)
    assert world["c"].plays(Role.BACKUP)
    world["b"].crash()
    world["a"].propose(b"two")
    world.settle()
    assert world.committed("c")[:1] == [b"one"]
    assert world.committed("a") == [b"one", b"two"]


def test_with_two_brokers_an_empty_one_is_admitted_as_well() -> None:
    world = World("ab")
    root = world.elect()
    other = next(node for node in world.nodes.values() if node is not root)
    other.crash()
    other.store.wipe()
    other.start()
    world.advance(2_000)
    assert other.plays(Role.BACKUP)
    root.propose(b"both")
    world.settle()
    assert world.committed(root.name) == [b"both"]


def test_a_store_that_was_given_its_first_members_is_not_empty() -> None:
    state = first_state([Member(NodeName("a"))])
    assert state.membership and state.term == 0 and state.vote is None
    with pytest.raises(ValueError, match="named twice"):
        first_state([Member(NodeName("a")), Member(NodeName("a"))])
