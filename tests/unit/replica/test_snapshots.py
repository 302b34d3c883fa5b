"""Stories about brokers that are too far behind for the log."""

from __future__ import annotations

import pytest

from pandomq.ids import LogIndex, NodeName
from pandomq.replica.completions import PieceTaken
from pandomq.replica.effects import Alarm, AlarmKind, InstallSnapshot
from pandomq.replica.limits import SNAPSHOT_PIECES_IN_FLIGHT_MAX
from pandomq.replica.log import tail
from pandomq.replica.log.catching_up import LaggingPeer
from pandomq.replica.log.progress import Progress, ProgressState, SnapshotTransfer
from pandomq.replica.protocol.messages import SnapshotPiece, decode
from pandomq.replica.roles.transitions import Role
from tests.unit.replica.world import Node, World


@pytest.fixture(autouse=True)
def short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "TAIL_ENTRIES_MAX", 2)


def behind(world: World, name: str = "c", count: int = 30) -> Node:
    """A backup that missed what has been reclaimed since."""
    root = world.elect("a")
    world[name].crash()
    for number in range(count):
        root.propose(f"message {number}".encode())
    world.settle()
    for node in world.nodes.values():
        if node.up:
            node.store.compact(node.replica.commit_index)
    root.propose(b"after")
    world.settle()
    return world[name]


def test_a_backup_that_lags_past_compaction_gets_a_snapshot_and_the_entries_after_it() -> None:
    world = World("abc")
    late = behind(world)
    late.start()
    world.advance(1_000)
    assert world.committed("c") == world.committed("a")
    assert late.store.durable.snapshot_index > 0
    assert late.plays(Role.BACKUP)


def test_an_empty_broker_gets_a_snapshot_and_learns_who_the_members_are() -> None:
    world = World("abc")
    late = behind(world)
    late.store.wipe()
    late.start()
    world.advance(2_000)
    assert late.plays(Role.BACKUP)
    assert late.replica.view().membership == world["a"].replica.view().membership


def test_the_cluster_works_on_while_a_snapshot_is_on_its_way() -> None:
    world = World("abc")
    late = behind(world)
    late.start()
    root = world["a"]
    for number in range(20):
        root.propose(f"meanwhile {number}".encode())
        for node in world.nodes.values():
            node.receive()
            node.disk_step()
    world.advance(2_000)
    assert world.committed("c") == world.committed("a")


def pieces_for(node: Node) -> int:
    return sum(isinstance(decode(data), SnapshotPiece) for _, data in node.inbox)


def begin_transfer(world: World, late: Node) -> None:
    """Lets it go on until some pieces have arrived, and not all."""
    late.start()
    taken = 0
    for _ in range(2_000):
        for node in world.nodes.values():
            if node is late and node.inbox and isinstance(decode(node.inbox[0][1]), SnapshotPiece):
                taken += 1
                if taken > 3:
                    return
            if not (node.disk_step() or node.receive()):
                node.tick()
        world.now_ms += 1
    raise AssertionError("no transfer")


def test_the_root_dies_in_the_middle_of_a_transfer() -> None:
    world = World("abc")
    late = behind(world)
    begin_transfer(world, late)
    world["a"].crash()
    assert world.elect().name == "b"
    world.advance(3_000)
    assert world.committed("c") == world.committed("b")
    assert late.plays(Role.BACKUP)


def test_the_receiver_dies_in_the_middle_of_a_transfer() -> None:
    world = World("abc")
    late = behind(world)
    begin_transfer(world, late)
    late.crash()
    late.start()
    world.advance(3_000)
    assert world.committed("c") == world.committed("a")


def test_pieces_that_get_lost_are_sent_again() -> None:
    world = World("abc")
    late = behind(world)
    late.start()
    lost = 0
    for step in range(3_000):
        for node in world.nodes.values():
            is_piece = bool(node.inbox) and isinstance(decode(node.inbox[0][1]), SnapshotPiece)
            if is_piece and step % 3 == 0:
                node.inbox.popleft()
                lost += 1
            if not (node.disk_step() or node.receive()):
                node.tick()
        world.now_ms += 2
    world.advance(2_000)
    assert lost > 3
    assert world.committed("c") == world.committed("a")


def test_a_snapshot_that_was_reclaimed_in_the_middle_of_its_transfer_is_replaced_by_a_newer_one() -> None:
    world = World("abc")
    late = behind(world)
    begin_transfer(world, late)
    world["a"].propose(b"newer")
    for _ in range(20):
        world["b"].receive()
        world["b"].disk_step()
        world["a"].receive()
        world["a"].disk_step()
    world["a"].store.compact(world["a"].replica.commit_index)
    world["a"].disk_step()
    world.advance(3_000)
    assert world.committed("c") == world.committed("a")


def test_a_snapshot_that_does_not_stand_the_test_is_asked_for_again() -> None:
    world = World("abc")
    late = behind(world)
    late.store.snapshot_is_bad = True
    late.start()
    world.advance(2_000)
    alarms = [alarm.kind for alarm in late.told if isinstance(alarm, Alarm)]
    assert alarms == [AlarmKind.BAD_SNAPSHOT, AlarmKind.BAD_SNAPSHOT]
    assert world.committed("c") == world.committed("a")


@pytest.mark.parametrize("steps", range(12))
def test_a_crash_at_any_moment_of_the_replacement_leaves_members_that_fit_the_log(steps: int) -> None:
    world = World("abc")
    late = behind(world)
    late.store.wipe()
    late.start()
    for _ in range(3_000):
        incoming = late.replica._core.incoming
        if incoming is not None and incoming.installing:
            break
        for node in world.nodes.values():
            if not (node.disk_step() or node.receive()):
                node.tick()
        world.now_ms += 1
    for _ in range(steps):
        late.disk_step()
    late.crash()
    late.start()
    membership = late.replica.view().membership
    assert (membership is not None) == (late.store.durable.snapshot_index > 0)
    world.advance(3_000)
    assert late.plays(Role.BACKUP)
    assert world.committed("c") == world.committed("a")


def deliver(world: World, late: Node, steps: int) -> list[int]:
    """Lets time pass; the numbers of the pieces that reach the late one."""
    numbers = []
    for _ in range(steps):
        for node in world.nodes.values():
            message = decode(node.inbox[0][1]) if node is late and node.inbox else None
            if isinstance(message, SnapshotPiece):
                numbers.append(message.number)
            if not (node.disk_step() or node.receive()):
                node.tick()
        world.now_ms += 1
    return numbers


def test_a_broker_that_installs_a_snapshot_is_not_sent_all_of_it_again() -> None:
    world = World("abc")
    late = behind(world)
    begin_transfer(world, late)
    while (incoming := late.replica._core.incoming) is None or not incoming.installing:
        deliver(world, late, 1)
    late.disk_works = False
    last = incoming.taken - 1
    assert last > 3
    assert set(deliver(world, late, 5 * world.settings.lease_ms)) == {last}
    late.disk_works = True
    world.advance(2_000)
    assert world.committed("c") == world.committed("a")


def test_a_transfer_goes_on_where_a_link_broke() -> None:
    world = World("abc")
    late = behind(world, count=200)
    begin_transfer(world, late)
    while (incoming := late.replica._core.incoming) is None or incoming.taken < 10:
        assert incoming is None or not incoming.whole
        deliver(world, late, 1)
    world.cut("a", "c", noticed=True)
    world.heal()
    again = deliver(world, late, 2_000)
    # Until the receiver says what it has, a few may be on their way.
    assert again[0] == 0
    assert len([number for number in again if number < 8]) <= SNAPSHOT_PIECES_IN_FLIGHT_MAX
    world.advance(2_000)
    assert world.committed("c") == world.committed("a")


def test_the_needs_of_a_lagging_peer_are_known() -> None:
    world = World("abc")
    late = behind(world)
    root = world["a"].replica
    # It is away, perhaps only for a moment.
    assert root.lagging_peers == [LaggingPeer(NodeName("c"), LogIndex(3), reads_log=False)]
    late.start()
    seen: set[LaggingPeer] = set()
    for _ in range(3_000):
        deliver(world, late, 1)
        seen.update(root.lagging_peers)
    snapshot_index = world["a"].store.durable.snapshot_index
    assert LaggingPeer(NodeName("c"), LogIndex(snapshot_index + 1), reads_log=False) in seen
    assert root.lagging_peers == []


def test_an_answer_to_a_heartbeat_does_not_end_a_transfer() -> None:
    peer = Progress(NodeName("c"), LogIndex(5))
    peer.phase, peer.transfer = ProgressState.SNAPSHOT, SnapshotTransfer(0)
    # It has all that comes before the entry that is gone, as it had when the transfer began.
    peer.acknowledged(LogIndex(4), LogIndex(4), round_=1)
    assert peer.phase is ProgressState.SNAPSHOT and peer.transfer is not None
    peer.acknowledged(LogIndex(9), LogIndex(9), round_=2)
    assert peer.next_index == 10 and peer.transfer is None


def test_a_snapshot_that_is_older_than_the_log_by_the_time_it_is_whole_replaces_nothing() -> None:
    world = World("abc")
    root = world.elect("a")
    late = world["c"]
    late.crash()
    for number in range(30):
        root.propose(f"message {number}".encode())
    world.settle()
    # The next root still has the whole log.
    root.store.compact(root.replica.commit_index)
    world.settle()
    begin_transfer(world, late)
    incoming = late.replica._core.incoming
    assert incoming is not None
    root.crash()
    assert world.elect().name == "b"
    world.advance(3_000)
    world["b"].propose(b"newer")
    world.settle()
    assert world.committed("c") == world.committed("b")

    # The disk says only now that it has the last piece.
    core = late.replica._core
    core.incoming, incoming.whole, incoming.offered = incoming, True, incoming.taken + 1
    late.replica.completed(PieceTaken(incoming.source, incoming.taken, False))
    assert not any(isinstance(effect, InstallSnapshot) for effect in late.replica.take_effects())
    assert core.incoming is None
