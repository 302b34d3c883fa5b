"""Stories about a root that goes in an orderly way (R37)."""

from __future__ import annotations

import pytest

from pandomq.ids import NodeName
from pandomq.replica.effects import ChangeEnded, Serve, SteppedDown
from pandomq.replica.limits import HAND_OVER_BYTES_MAX, HAND_OVER_CLOSE_MS, HAND_OVER_HALT_MS, HAND_OVER_MS
from pandomq.replica.replica import NotRoot
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from tests.unit.replica.world import TICK_MS, Node, World


def hand_over(node: Node, successor: str | None = None) -> None:
    node.replica.hand_over(None if successor is None else NodeName(successor))
    node.do_effects()


def served(node: Node) -> list[bytes | None]:
    return [effect.handed_over for effect in node.told if isinstance(effect, Serve)]


def ended(node: Node) -> list[tuple[bool, str]]:
    return [(effect.done, effect.text) for effect in node.told if isinstance(effect, ChangeEnded)]


def work(world: World) -> None:
    """Disks and messages do what there is to do, and a hand-over goes on at ticks."""
    for _ in range(3):
        world.settle()
        world.advance(TICK_MS)


def test_the_successor_has_the_whole_log_and_knows_the_deliveries() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    root.propose(b"one")
    hand_over(root, "c")
    work(world)
    assert world["c"].plays(Role.ROOT)
    assert served(world["c"]) == [b"unacked"]
    assert world.committed("c") == [b"one"]
    assert ended(root) == [(True, "handed over to c")]


def test_a_hand_over_takes_only_the_time_of_messages_and_disks() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    before_ms = world.now_ms
    hand_over(root)
    world.settle()
    assert len(world.roots) == 1 and world.roots[0] is not root and world.now_ms == before_ms


def test_nothing_is_proposed_in_the_end() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    hand_over(root)
    assert not root.replica.serving
    with pytest.raises(NotRoot):
        root.propose(b"two")


def test_the_root_goes_on_while_the_disk_of_its_successor_is_far_behind() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    world["c"].disk_works = False
    root.propose(b"one")
    hand_over(root, "c")
    world.advance(HAND_OVER_CLOSE_MS + 100)
    root.propose(b"two")
    world["c"].disk_works = True
    world.advance(200)
    assert world["c"].plays(Role.ROOT)
    assert world.committed("c") == [b"one", b"two"]


def test_one_hand_over_at_a_time() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    world["c"].disk_works = False
    root.propose(b"one")
    hand_over(root, "c")
    assert root.replica.view().handing_over
    hand_over(root, "b")
    assert ended(root) == [(False, "this broker is already handing over to c")]
    world["c"].disk_works = True
    work(world)
    assert ended(root)[1:] == [(True, "handed over to c")]
    assert not root.replica.view().handing_over


def test_a_successor_that_does_not_catch_up_in_time_is_given_up_and_the_root_has_served_all_the_time() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    world["c"].disk_works = False
    root.propose(b"one")
    hand_over(root, "c")
    for _ in range(0, HAND_OVER_MS + 100, TICK_MS):
        world.advance(TICK_MS)
        assert root.replica.serving
    assert ended(root) == [(False, "c did not catch up in time")]
    root.propose(b"two")
    world.settle()
    assert world.committed("a") == [b"one", b"two"]


def test_a_root_that_has_to_go_tries_it_though_no_disk_comes_close() -> None:
    """Publishers wait then, so that disks may catch up; but less than a second."""
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    world["b"].disk_works = world["c"].disk_works = False
    root.propose(b"one")
    hand_over(root)
    world.advance(HAND_OVER_MS - HAND_OVER_HALT_MS - 2 * TICK_MS)
    assert root.replica.serving
    world.advance(4 * TICK_MS)
    assert root.plays(Role.ROOT) and not root.replica.serving
    world["b"].disk_works = world["c"].disk_works = True
    work(world)
    assert not root.plays(Role.ROOT) and len(world.roots) == 1


def test_publishers_wait_less_than_a_second_for_a_hand_over_that_is_given_up() -> None:
    """The successor's disk stops when it was nearly done."""
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    world["c"].disk_works = False
    root.propose(b"one")
    hand_over(root, "c")
    root.propose(b"two")
    while world["c"].replica.view().synced_index < root.replica.view().last_index - 1:
        world["c"].disk_works = True
        world["c"].receive()
        world["c"].disk_step()
        world["c"].disk_works = False
        world["b"].receive()
        world["b"].disk_step()
        root.receive()
        root.disk_step()
    waited_ms = 0
    for _ in range(0, 2 * HAND_OVER_MS, TICK_MS):
        world.advance(TICK_MS)
        waited_ms += 0 if root.replica.serving else TICK_MS
    assert 0 < waited_ms <= HAND_OVER_HALT_MS + TICK_MS
    assert root.replica.serving


def test_a_root_whose_vote_is_needed_waits_for_its_own_disk() -> None:
    world = World("ab", settings=ReplicaSettings(min_copies=1))
    root = world.elect("a")
    world.advance(500)
    root.disk_works = False
    root.propose(b"one")
    world.settle()
    assert world.committed("b") == [b"one"]
    hand_over(root, "b")
    world.advance(300)
    assert root.plays(Role.ROOT)
    root.disk_works = True
    work(world)
    assert world["b"].plays(Role.ROOT)
    assert served(world["b"]) == [b"unacked"]


def test_a_root_whose_vote_is_not_needed_does_not_wait_for_its_own_disk() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    root.disk_works = False
    root.propose(b"one")
    hand_over(root, "c")
    work(world)
    assert world["c"].plays(Role.ROOT)


def test_a_root_whose_own_disk_does_not_catch_up_in_time_goes_on_and_reports_why() -> None:
    world = World("ab", settings=ReplicaSettings(min_copies=1, disk_stall_ms=10 * HAND_OVER_MS))
    root = world.elect("a")
    world.advance(500)
    root.disk_works = False
    root.propose(b"one")
    hand_over(root, "b")
    world.advance(HAND_OVER_MS + 100)
    assert root.replica.serving
    assert ended(root) == [(False, "the disks of the primaries that would elect it did not catch up in time")]


def test_a_root_does_not_hand_over_to_a_broker_that_too_few_are_left_to_elect() -> None:
    world = World("abcd")
    root = world.elect("a")
    world.advance(500)
    world["c"].crash()
    world["d"].crash()
    hand_over(root, "b")
    world.advance(HAND_OVER_MS + 100)
    assert root.replica.serving


def test_a_successor_requests_votes_from_brokers_whose_links_come_up_meanwhile() -> None:
    world = World("abcd")
    root = world.elect("a")
    world.advance(500)
    for other in "bc":
        world.cut("d", other, noticed=True)
    world.advance(100)
    hand_over(root, "d")
    world.settle()
    assert world["d"].plays(Role.CANDIDATE)
    world.heal()
    world.settle()
    assert world["d"].plays(Role.ROOT)
    assert served(world["d"]) == [b"unacked"]


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


def test_deliveries_of_a_hand_over_are_ignored_if_another_was_root_in_between() -> None:
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


def test_a_broker_that_is_not_root_or_has_no_backup_cannot_hand_over() -> None:
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
    assert all(not node.take_told(SteppedDown) or node is not root for node in world.nodes.values())


def test_a_successor_has_as_long_for_votes_as_it_would_have_with_a_fast_disk() -> None:
    """Its candidacy begins when its own vote is on its disk: it requests no vote before that."""
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    hand_over(root, "c")
    while not world["c"].plays(Role.CANDIDATE):
        world["c"].receive()
        root.disk_step()
    world["c"].disk_works = False
    world.advance(root.settings.lease_ms - 100)
    assert world["c"].plays(Role.CANDIDATE)
    world["c"].disk_works = True
    world.settle()
    assert world["c"].plays(Role.ROOT)
    assert served(world["c"]) == [b"unacked"]
    assert ended(root) == [(True, "handed over to c")]


def test_a_successor_waits_for_votes_as_long_as_no_other_broker_can_have_them() -> None:
    world = World("ab")
    root = world.elect("a")
    world.advance(500)
    hand_over(root, "b")
    while not world["b"].plays(Role.CANDIDATE):
        world["b"].receive()
        root.disk_step()
    root.disk_works = False
    world.advance(root.settings.lease_ms - 100)
    root.disk_works = True
    world.settle()
    assert world["b"].plays(Role.ROOT)
    assert ended(root) == [(True, "handed over to b")]


def test_a_hand_over_to_a_broker_that_is_not_elected_is_not_done() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    hand_over(root, "c")
    while root.role is Role.ROOT:
        for node in world.nodes.values():
            node.receive()
            node.disk_step()
    assert ended(root) == []
    world["c"].crash()
    root.paused = True
    world.advance(100)
    root.paused = False
    assert world.elect().name == "b"
    world.settle()
    assert ended(root) == [(False, "b was elected instead of c")]


def test_a_hand_over_without_an_answer_is_not_done() -> None:
    world = World("ab")
    root = world.elect("a")
    world.advance(500)
    hand_over(root, "b")
    while root.role is Role.ROOT:
        for node in world.nodes.values():
            node.receive()
            node.disk_step()
    world["b"].crash()
    world.advance(HAND_OVER_MS + 100)
    assert ended(root) == [(False, "nothing shows yet that b was elected")]
