"""Stories about the log: how it gets to others, when it is safe, and what becomes of what is not."""

from __future__ import annotations

from unittest import mock

import pytest

from pandomq.ids import LogIndex, NodeName
from pandomq.replica import limits
from pandomq.replica.effects import Alarm, AlarmKind, Committed, Received, Serve
from pandomq.replica.log import progress, tail
from pandomq.replica.log.progress import Progress, ProgressState, SnapshotTransfer
from pandomq.replica.members import votes
from pandomq.replica.replica import NotRoot
from pandomq.replica.roles.transitions import Role
from pandomq.replica.settings import ReplicaSettings
from tests.unit.replica.world import Node, World


@pytest.mark.proves("R23")
def test_an_entry_is_committed_when_two_disks_have_it_and_not_before() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(1_000)
    before = root.replica.commit_index
    root.disk_works = world["b"].disk_works = world["c"].disk_works = False
    root.propose(b"one")
    world.settle()
    assert root.replica.commit_index == before
    world["b"].disk_works = True
    world.settle()
    assert root.replica.commit_index == before
    root.disk_works = True
    world.settle()
    assert root.replica.commit_index == before + 1


@pytest.mark.proves("R23")
def test_two_backups_are_enough_while_the_roots_own_disk_is_slow() -> None:
    world = World("abc")
    root = world.elect("a")
    before = root.replica.commit_index
    root.disk_works = False
    root.propose(b"one")
    world.settle()
    assert root.replica.commit_index == before + 1


def test_entries_that_enough_have_received_are_reported_before_the_commit() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(1_000)
    root.told.clear()
    for node in world.nodes.values():
        node.disk_works = False
    index = root.propose(b"reliable and transient", prompt=True)
    world.settle()
    assert root.told == [Received(index)]
    for node in world.nodes.values():
        node.disk_works = True
    world.settle()
    assert root.told[-1] == Committed(index)


def test_entries_without_a_waiting_confirm_are_not_reported_as_received() -> None:
    world = World("abc")
    root = world.elect("a")
    root.told.clear()
    root.propose(b"persistent")
    world.settle()
    assert root.take_told(Received) == []


def alarms(node: Node) -> list[tuple[AlarmKind, bool]]:
    return [(alarm.kind, alarm.raised) for alarm in node.take_told(Alarm) if isinstance(alarm, Alarm)]


def test_with_two_brokers_and_one_gone_the_root_stays_and_confirms_nothing() -> None:
    world = World("ab")
    root = world.elect("a")
    world["b"].crash()
    index = root.propose(b"one")
    world.advance(5_000)
    assert root.replica.serving and root.replica.commit_index < index
    assert alarms(root) == [(AlarmKind.TOO_FEW_COPIES, True)]
    world["b"].start()
    world.advance(500)
    assert root.replica.commit_index == index
    assert alarms(root) == [(AlarmKind.TOO_FEW_COPIES, False)]


@pytest.mark.proves("C9")
def test_the_last_man_standing_goes_on_with_an_alarm() -> None:
    world = World("ab", settings=ReplicaSettings(last_man_standing=True))
    root = world.elect("a")
    world.advance(1_500)
    world["b"].crash()
    index = root.propose(b"one")
    world.advance(1_500)
    assert root.replica.commit_index == index
    assert alarms(root) == [(AlarmKind.LAST_MAN_STANDING, True)]


@pytest.mark.proves("C9")
def test_the_last_man_standing_is_never_less_than_half() -> None:
    world = World("abcd", settings=ReplicaSettings(last_man_standing=True, min_copies=4))
    root = world.elect("a")
    world["c"].crash()
    world["d"].crash()
    index = root.propose(b"with b")
    world.advance(1_500)
    assert root.replica.commit_index == index
    world["b"].disk_works = False
    index = root.propose(b"without b")
    world.advance(5_000)
    assert root.replica.commit_index < index


@pytest.mark.proves("R9", "L1b")
def test_a_surplus_tail_is_cut_to_the_logs_truth() -> None:
    world = World("abcde")
    old = world.elect("a")
    world.isolate("a", "b")
    old.propose(b"x1", b"x2")
    old.propose(b"x3")
    world.settle()
    assert world.log("b") == [b"x1", b"x2", b"x3"]
    new = world.elect_among("cde")
    new.propose(b"y1")
    world.settle()
    world.heal()
    world.advance(2_000)
    assert [world.log(name) for name in "abcde"] == [[b"y1"]] * 5
    assert world["a"].store.durable.aside == [], "nobody was told of the tail, so it is not kept"


def test_a_broker_that_is_cutting_its_log_does_not_stand_until_it_is_cut() -> None:
    """A root would write where the disk may still have what was to go."""
    world = World("abc")
    world.elect("a")
    core = world["b"].replica._core
    world.advance(500)
    assert votes.may_stand(core)
    core.cut(LogIndex(core.tail.last_index + 1), keep_aside=False)
    assert not votes.may_stand(core)
    world["b"].do_effects()
    world.settle()
    assert votes.may_stand(core)


def test_a_new_root_serves_when_an_entry_of_its_own_term_is_committed() -> None:
    world = World("abc")
    root = world.elect("a")
    root.propose(b"one")
    world.settle()
    root.crash()
    successor = world.elect()
    served = [effect for effect in successor.told if isinstance(effect, Serve)]
    view = successor.replica.view()
    assert [(effect.term, effect.handed_over) for effect in served] == [(view.term, None)]
    assert successor.store.memory.entries[served[0].index - 1].term == view.term


def test_only_a_root_takes_proposals() -> None:
    world = World("abc")
    world.elect("a")
    with pytest.raises(NotRoot):
        world["b"].propose(b"no")


def test_appends_follow_each_other_without_waiting_within_a_window() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    world["b"].inbox.clear()
    with mock.patch.object(progress, "IN_FLIGHT_APPENDS_MAX", 4):
        for number in range(10):
            root.propose(str(number).encode())
        assert len(world["b"].inbox) == 4
        world.settle()
    assert len(world.committed("a")) == 10


def test_a_slow_backup_leaves_the_in_sync_set_and_catches_up_from_disk() -> None:
    """D13: it costs a bounded window, and no commit waits for it."""
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    world["c"].paused = True
    with mock.patch.object(tail, "TAIL_ENTRIES_MAX", 8), mock.patch.object(progress, "IN_FLIGHT_APPENDS_MAX", 4):
        for number in range(40):
            root.propose(str(number).encode())
            world.settle()
        world.advance(1_500)
        assert len(world.committed("a")) == 40
        assert [peer.in_sync for peer in root.replica.view().peers] == [True, False]
        world["c"].paused = False
        world.advance(3_000)
    assert [peer.in_sync for peer in root.replica.view().peers] == [True, True]
    assert world.log("c") == world.log("a")


def test_publishers_are_held_back_when_nothing_gets_committed() -> None:
    world = World("ab")
    root = world.elect("a")
    world["b"].crash()
    with mock.patch("pandomq.replica.roles.root.UNCOMMITTED_BYTES_MAX", 1_000):
        root.propose(bytes(1_001).replace(b"\0", b"\1"))
        assert root.replica.holds_back
        world["b"].start()
        world.advance(1_000)
        assert not root.replica.holds_back


def test_backups_learn_the_commit_index_at_once() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    index = root.propose(b"one")
    world.settle()
    assert [node.replica.commit_index for node in world.nodes.values()] == [index] * 3


def test_an_entry_larger_than_an_append_goes_alone() -> None:
    world = World("ab")
    root = world.elect("a")
    large = b"\1" * (limits.APPEND_BYTES_MAX + 1)
    root.propose(b"small", large, b"small")
    world.settle()
    assert world.log("b") == [b"small", large, b"small"]


def test_the_log_that_backups_in_sync_need_is_named() -> None:
    world = World("abc")
    root = world.elect("a")
    world.advance(500)
    world["c"].paused = True
    index = LogIndex(root.propose(b"one") - 1)
    world.settle()
    assert root.replica.needed_from == index + 1


def test_losses_doubles_and_reorderings_do_no_harm() -> None:
    world = World("abc", seed=7)
    root = world.elect("a")
    for number in range(60):
        root.propose(str(number).encode())
        for node in world.nodes.values():
            if node.inbox and number % 3 == 0:
                node.inbox.popleft()
            if node.inbox and number % 4 == 0:
                node.inbox.append(node.inbox[0])
            node.inbox.rotate(-1)
            node.receive()
            node.disk_step()
    world.advance(3_000)
    assert world.roots == [root]
    assert [world.committed(name) for name in "abc"] == [[str(number).encode() for number in range(60)]] * 3


def test_a_backup_that_lost_unsynced_entries_gets_them_again() -> None:
    world = World("abc")
    root = world.elect("a")
    world["b"].disk_works = False
    root.propose(b"one", b"two")
    world.settle()
    world["b"].crash()
    world["b"].disk_works = True
    world["b"].start()
    assert world.log("b") == []
    world.advance(1_000)
    assert world.log("b") == [b"one", b"two"]
    assert world["b"].plays(Role.BACKUP)


def test_a_heartbeats_answer_does_not_begin_a_snapshot_anew() -> None:
    """A peer that waits for a snapshot answers heartbeats, too: with all it has, which is what the root knew."""
    peer = Progress(NodeName("c"), LogIndex(1))
    peer.phase, peer.transfer = ProgressState.SNAPSHOT, SnapshotTransfer(0)
    peer.acknowledged(LogIndex(0), LogIndex(0), 1)
    assert peer.transfer is not None
    peer.acknowledged(LogIndex(7), LogIndex(7), 2)
    assert peer.transfer is None and peer.next_index == 8
