"""Secondaries get excerpts of the log: at once what says something, the rest in time; and never what is not theirs."""

from __future__ import annotations

from pandomq.ids import LogIndex, NodeName
from pandomq.replica.effects import ChangeEnded
from pandomq.replica.limits import EXCERPTS_GATHERED
from pandomq.replica.members.membership import Member
from pandomq.replica.protocol.messages import Append, decode
from pandomq.replica.roles.root import Root
from pandomq.replica.roles.transitions import Role
from tests.unit.replica.world import Node, World


class Capitals:
    """Of a payload only the capital letters matter."""

    def of(self, payload: bytes) -> bytes:
        return bytes(octet for octet in payload if chr(octet).isupper())

    def is_empty(self, excerpt: bytes) -> bool:
        return not excerpt


def made(names: str = "abc") -> tuple[World, Node]:
    world = World(names, excerpts=Capitals())
    root = world.elect("a")
    world.add("s", observer=True).start()
    world.advance(1_500)
    return world, root


def logged(node: Node) -> list[bytes]:
    return [entry.payload for entry in node.store.memory.entries if entry.payload[:1] < b"\x80"]


def test_a_secondary_has_every_entry_in_its_place_and_only_a_part_of_it() -> None:
    world, root = made()
    root.propose(b"some Words")
    root.propose(b"none")
    root.propose(b"And more")
    world.settle()
    assert logged(world["s"]) == [b"W", b"", b"A"]
    assert logged(world["b"]) == [b"some Words", b"none", b"And more"]
    assert world["s"].replica.view().last_index == world["a"].replica.view().last_index


def test_a_secondary_learns_without_a_heartbeat_that_a_relevant_entry_is_committed() -> None:
    world, root = made()
    index = root.propose(b"Word")
    world.settle()
    assert world["s"].replica.commit_index == index


def test_empty_excerpts_wait_for_a_heartbeat_or_until_there_are_many() -> None:
    world, root = made()
    before = world["s"].replica.view().last_index
    root.propose(b"nothing")
    world.settle()
    assert world["s"].replica.view().last_index == before
    world.advance(world.settings.heartbeat_ms)
    assert world["s"].replica.view().last_index == before + 1
    for _ in range(EXCERPTS_GATHERED + 1):
        root.propose(b"nothing")
    world.settle()
    assert world["s"].replica.view().last_index > before + 1


def test_a_root_that_is_the_only_primary_sends_empty_excerpts_with_a_heartbeat_too() -> None:
    """It keeps no entries in memory for other voters, so these come from its disk."""
    world, root = made("a")
    root.propose(b"Word")
    root.propose(b"nothing")
    world.settle()
    world.advance(2 * world.settings.heartbeat_ms)
    assert logged(world["s"]) == [b"W", b""]
    assert world["s"].replica.commit_index == root.replica.commit_index


def test_a_secondary_counts_as_up_to_date_while_it_lacks_only_empty_excerpts() -> None:
    world, root = made()
    root.propose(b"nothing")
    world.settle()

    def in_sync() -> bool:
        return next(peer.in_sync for peer in root.replica.view().peers if peer.name == "s")

    assert in_sync()
    world.isolate("s")
    root.propose(b"Word")
    world.settle()
    assert not in_sync()


def test_the_next_root_goes_on_where_the_last_one_was() -> None:
    world, root = made()
    root.propose(b"One")
    world.settle()
    root.crash()
    second = world.elect_among("bc")
    second.propose(b"two")
    second.propose(b"Three")
    world.advance(500)
    assert logged(world["s"])[-3:] == [b"O", b"", b"T"]
    assert world["s"].replica.root == second.name


def test_uncommitted_entries_are_removed_from_a_secondary_too() -> None:
    world, root = made()
    world.isolate("b", "c")
    root.propose(b"Lost")
    world.advance(100)
    assert logged(world["s"])[-1:] == [b"L"]
    second = world.elect_among("bc")
    world.heal()
    second.propose(b"Kept")
    world.advance(3_000)
    assert logged(world["s"])[-1:] == [b"K"]


def test_a_secondary_that_is_far_behind_gets_entries_from_the_disk() -> None:
    world, root = made()
    world["s"].crash()
    world.isolate("s", noticed=True)
    for number in range(50):
        root.propose(b"Entry %d" % number)
    world.settle()
    world.heal()
    world["s"].start()
    world.advance(1_500)
    assert logged(world["s"])[-50:] == [b"E"] * 50


def test_a_secondary_keeps_nothing_else_even_if_it_is_sent_more() -> None:
    world, root = made()
    handlers = root.replica._core.handlers
    assert isinstance(handlers, Root)
    # As if its greeting had been lost.
    handlers.peers[NodeName("s")].observer = False
    root.propose(b"some Words")
    world.settle()
    assert logged(world["s"]) == [b"W"]


def test_a_primary_takes_no_excerpts() -> None:
    world, root = made()
    handlers = root.replica._core.handlers
    assert isinstance(handlers, Root)
    handlers.peers[NodeName("b")].observer = True
    root.propose(b"some Words")
    world.settle()
    assert logged(world["b"]) == []
    world.advance(1_500)
    assert logged(world["b"]) == [b"some Words"], "the next greeting has told what it is"


def test_a_store_of_excerpts_does_not_become_that_of_a_primary() -> None:
    world, root = made()
    root.propose(b"some Words")
    world.advance(500)
    world["s"].crash()
    world["s"].observer = False
    world["s"].start()
    assert world["s"].plays(Role.LEARNER)
    world.advance(2_000)
    assert logged(world["s"]) == [b"some Words"]
    assert not world["s"].replica._core.record.excerpts


def test_the_store_of_a_primary_does_not_become_that_of_a_secondary() -> None:
    world, root = made()
    root.propose(b"some Words")
    world.advance(500)
    world["c"].crash()
    world["c"].observer = True
    world["c"].start()
    world.advance(2_000)
    assert world["c"].plays(Role.OBSERVER)
    assert logged(world["c"]) == [b"W"]
    root.propose(b"More")
    world.advance(500)
    assert world.committed("a")[-1] == b"More"
    world["b"].crash()
    world.advance(3_000)
    assert world.roots == [], "what it holds does not count, though its name is a voter's"


def test_a_secondary_is_made_no_voter() -> None:
    world, root = made()
    root.replica.change_members([Member(NodeName(name)) for name in "abcs"])
    root.do_effects()
    ended = root.take_told(ChangeEnded)[-1]
    assert isinstance(ended, ChangeEnded) and not ended.done and "secondary" in ended.text
    world["s"].replica.promote([NodeName("a"), NodeName("b"), NodeName("c")], "epoch")
    world["s"].do_effects()
    assert [effect.done for effect in world["s"].take_told(ChangeEnded) if isinstance(effect, ChangeEnded)] == [False]


def test_a_secondary_that_leaves_is_forgotten() -> None:
    world, root = made()
    assert [view.replica.view().observers for view in (root, world["b"])] == [("s",), ("s",)]
    world["s"].crash()
    world.advance(100)
    assert [view.replica.view().observers for view in (root, world["b"])] == [(), ()]
    assert "s" not in [peer.name for peer in root.replica.view().peers]


def test_many_secondaries_share_one_excerpt() -> None:
    made_of: list[bytes] = []

    class Counting(Capitals):
        def of(self, payload: bytes) -> bytes:
            made_of.append(payload)
            return super().of(payload)

    world = World("a", excerpts=Counting())
    root = world.elect("a")
    for name in "stu":
        world.add(name, observer=True).start()
    world.advance(1_500)
    made_of.clear()
    root.propose(b"Word")
    root.do_effects()
    assert made_of == [b"Word"]
    appends = [decode(data) for name in "stu" for _, data in world[name].inbox]
    assert [append.excerpts for append in appends if isinstance(append, Append) and append.entries] == [True] * 3
    assert LogIndex(root.replica.view().last_index) > 0
