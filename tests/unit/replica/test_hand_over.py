"""Stories about a root that goes in an orderly way (R37)."""

from __future__ import annotations

import pytest

from pandomq.ids import NodeName
from pandomq.replica.effects import ChangeEnded, Resigned, Serve
from pandomq.replica.limits import HAND_OVER_BYTES_MAX, HAND_OVER_MS
from pandomq.replica.replica import NotRoot
from pandomq.replica.roles.transitions import Role
from tests.unit.replica.world import Node, World


def hand_over(node: Node, successor: str | None = None) -> None:
    node.replica.hand_over(None if successor is None else NodeName(successor))
    node.do_effects()


def served(node: Node) -> list[bytes | None]:
    return [effect.handed_over for effect in node.told if isinstance(effect, Serve)]


def test_the_successor_has_the_whole_log_and_knows_what_was_delivered() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    root.propose(b"one")
    hand_over(root, "c")
    world.settle()
    assert world["c"].plays(Role.ROOT)
    assert served(world["c"]) == [b"unacked"]
    assert world.committed("c") == [b"one"]
    assert [effect.done for effect in root.told if isinstance(effect, ChangeEnded)] == [True]


def test_it_takes_no_time_but_that_of_messages_and_disks() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    before_ms = world.now_ms
    hand_over(root)
    world.settle()
    assert len(world.roots) == 1 and world.roots[0] is not root and world.now_ms == before_ms


def test_nothing_is_proposed_meanwhile() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    root.propose(b"one")
    hand_over(root)
    assert not root.replica.serving
    with pytest.raises(NotRoot):
        root.propose(b"two")


def test_a_successor_that_does_not_catch_up_in_time_is_given_up_and_the_root_goes_on() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    world["c"].disk_works = False
    root.propose(b"one")
    hand_over(root, "c")
    world.advance(HAND_OVER_MS + 100)
    assert root.replica.serving
    root.propose(b"two")
    world.settle()
    assert world.committed("a") == [b"one", b"two"]


def test_a_successor_that_dies_is_followed_by_another_who_assumes_the_worst() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    hand_over(root, "c")
    while root.role is Role.ROOT:
        for node in world.nodes.values():
            node.receive()
            node.disk_step()
    world["c"].crash()
    successor = world.elect()
    assert served(successor)[-1] is None


def test_a_payload_that_is_too_large_is_left_out() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    root.payload = bytes(HAND_OVER_BYTES_MAX + 1)
    hand_over(root, "b")
    world.settle()
    assert served(world["b"]) == [None]


def test_what_was_said_of_deliveries_is_not_believed_if_another_was_root_in_between() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    hand_over(root, "c")
    while root.role is Role.ROOT:
        for node in world.nodes.values():
            node.receive()
            node.disk_step()
    world["c"].paused = True
    world.elect().crash()
    world["c"].paused = False
    world["c"].tick()
    world.elect()
    assert b"unacked" not in served(world["c"])


def test_who_is_not_root_or_has_no_backup_cannot_hand_over() -> None:
    world = World("ab")
    root = world.elect("a")
    hand_over(world["b"])
    world["b"].crash()
    world.advance(1_500)
    hand_over(root)
    for node in world.nodes.values():
        assert [effect.done for effect in node.told if isinstance(effect, ChangeEnded)] == [False]


def test_a_rolling_restart_loses_nothing() -> None:
    world = World("abc")
    world.elect("a")
    world.advance(500)
    for number, name in enumerate("abc"):
        world.elect().propose(str(number).encode())
        world.settle()
        if world[name].role is Role.ROOT:
            hand_over(world[name])
            world.settle()
        assert world[name].role is not Role.ROOT
        world[name].crash()
        world[name].start()
        world.advance(1_500)
    root = world.elect()
    assert world.committed(root.name) == [b"0", b"1", b"2"]
    assert all(not node.take_told(Resigned) or node is not root for node in world.nodes.values())
