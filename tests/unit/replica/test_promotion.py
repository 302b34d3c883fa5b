"""Stories about forced promotions: what a person may do when too many primaries are gone, and what becomes of the
rest."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pandomq.ids import NodeName
from pandomq.replica.effects import Alarm, AlarmKind
from pandomq.replica.limits import PROBE_MS
from pandomq.replica.protocol.messages import AskVote, Probe, ProbeAnswer, ReplicaMessage
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from tests.unit.replica.promoting import epoch, promote
from tests.unit.replica.world import Node, World


def test_the_last_of_two_goes_on_after_a_forced_promotion() -> None:
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


def test_brokers_named_as_dead_come_back_as_learners_and_their_surplus_is_set_aside() -> None:
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


def test_if_all_are_in_doubt_a_forced_promotion_chooses_the_store() -> None:
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


def test_a_higher_epoch_wins_and_the_other_side_keeps_its_entries_aside() -> None:
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
    world["a"].replica.step_down("for the sake of the story")
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
    """e and f, who are left beside the promoted d, are so far behind that they set their stores aside; then all three
    restart."""
    world = World("abcdef", settings=ReplicaSettings(tail_bytes=1))
    root = world.elect("a")
    root.propose(b"of all")
    world.settle()
    world.isolate("e", "f")
    root.propose(b"of four")
    world.advance(1_000)
    for name in "abc":
        world[name].crash()
    world["d"].store.compact(world["d"].replica.commit_index)
    world.heal()
    world.advance(3_000)
    assert promote(world, "d", "abc").done
    world.elect("d")
    world.advance(2_000)
    assert all(world[name].store.durable.aside for name in "ef")
    for name in "def":
        world[name].crash()
    for name in "def":
        world[name].start()
    world.elect().propose(b"new")
    world.advance(1_000)
    assert all(world.committed(name)[-1:] == [b"new"] for name in "def")


def test_a_store_of_the_same_epoch_that_is_set_aside_leaves_its_broker_in_doubt() -> None:
    """c is started as a secondary, sets its store aside, and is a primary once more: what it acknowledged is gone."""
    world = World("abc")
    root = world.elect("a")
    root.propose(b"one")
    world.settle()
    node = world["c"]
    node.crash()
    node.observer = True
    node.start()
    while not node.store.durable.aside:
        assert node.disk_step() or node.receive() or root.receive() or root.disk_step()
    node.crash()
    node.observer = False
    node.start()
    assert node.replica.view().joining


def test_a_new_epoch_is_higher_than_each_that_a_survivor_knows() -> None:
    """e is promoted, f learns that there is an epoch, and e is lost. g, which does not know of it, is promoted next."""
    world = World("abcdefg")
    world.elect("a")
    for name in "abcd":
        world[name].crash()
    world.advance(3_000)
    with hears_only(world, f=(Probe, AskVote), g=(Probe,)):
        assert promote(world, "e", "abcd", "first").done
        world.settle()
        world["e"].crash()
    assert (epoch(world["f"]), epoch(world["g"])) == ((1, "first"), (0, ""))
    with hears_only(world, g=(ProbeAnswer,)):
        assert promote(world, "g", "abcde", "second").done
    world.elect()
    assert epoch(world["f"]) == epoch(world["g"]) == (2, "second")


def test_a_survivor_that_is_promoted_next_begins_a_newer_epoch() -> None:
    """d is promoted, and lost before e knows that its epoch has begun. e is promoted in its place, and d comes
    back."""
    world = World("abcde")
    world.elect("a")
    for name in "abc":
        world[name].crash()
    world.advance(3_000)
    with hears_only(world, e=(Probe,)):
        assert promote(world, "d", "abc", "first").done
        world["d"].crash()
    world["e"].crash()
    world["e"].start()
    assert epoch(world["e"]) == (0, "")
    world.advance(3_000)
    assert promote(world, "e", "abcd", "second").done
    world.elect("e").propose(b"new")
    world["d"].start()
    world.advance(3_000)
    assert epoch(world["d"]) == epoch(world["e"]) == (2, "second")
    assert world.committed("d") == world.committed("e") == [b"new"]


@contextmanager
def hears_only(world: World, **kinds: tuple[type[ReplicaMessage], ...]) -> Iterator[None]:
    """No other messages get to these brokers."""
    deliver = world.send

    def send(sender: NodeName, peer: NodeName, message: ReplicaMessage) -> None:
        if peer not in kinds or isinstance(message, kinds[peer]):
            deliver(sender, peer, message)

    world.send = send  # type: ignore[method-assign]
    yield
    world.send = deliver  # type: ignore[method-assign]
