"""Stories about entries and snapshots that arrive late: after the log was reclaimed, cut, or has begun a new epoch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pandomq.ids import NodeName, Term
from pandomq.replica.completions import Fetched, Missing, PieceTaken
from pandomq.replica.effects import ChangeEnded, InstallSnapshot
from pandomq.replica.log import tail
from pandomq.replica.log.progress import ProgressState
from pandomq.replica.protocol.entries import LogEntry
from pandomq.replica.protocol.messages import ReplicaMessage, SnapshotPiece
from pandomq.replica.roles.root import Root
from pandomq.replica.roles.transitions import Role
from tests.unit.replica.test_snapshots import begin_transfer, behind, deliver
from tests.unit.replica.world import World


@pytest.fixture(autouse=True)
def short_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "TAIL_ENTRIES_MAX", 2)


@pytest.mark.parametrize("is_secondary", [False, True])
def test_a_root_survives_heartbeats_of_a_broker_whose_snapshot_is_under_way(is_secondary: bool) -> None:
    """The broker answers with the last entry that it has, which the root has reclaimed."""
    world = World("abc")
    root = world.elect("a")
    late = world["c"]
    if is_secondary:
        late = world.add("s", observer=True)
        late.start()
    root.propose(b"before")
    world.advance(1_500)
    world.isolate(late.name, noticed=True)
    for number in range(30):
        root.propose(b"message %d" % number)
    world.settle()
    root.store.compact(root.replica.commit_index)
    with pytest.MonkeyPatch.context() as patch:
        lost: list[SnapshotPiece] = []
        patch.setattr(world, "send", losing_pieces(world, lost))
        world.heal()
        for _ in range(5):
            world.advance(world.settings.heartbeat_ms)
            root.propose(b"meanwhile")
            world.settle()
    assert lost and root.plays(Role.ROOT)
    world.advance(3_000)
    assert late.replica.commit_index == root.replica.commit_index


def losing_pieces(world: World, lost: list[SnapshotPiece]) -> Callable[[NodeName, NodeName, ReplicaMessage], None]:
    """No piece of a snapshot arrives; heartbeats and their answers do."""
    send = world.send

    def send_others(sender: NodeName, peer: NodeName, message: ReplicaMessage) -> None:
        if isinstance(message, SnapshotPiece):
            lost.append(message)
        else:
            send(sender, peer, message)

    return send_others


def test_entries_read_from_a_log_before_it_was_cut_are_not_sent() -> None:
    """The disk may answer an earlier term of the same root late: what it has read may have been cut since."""
    world = World("abc")
    world.elect("a")
    world.step_down()
    root = world.elect("a")
    assert root.replica._core.term > 1
    world["c"].crash()
    for number in range(30):
        root.propose(b"message %d" % number)
    world.settle()
    world["c"].start()
    handlers = root.replica._core.handlers
    assert isinstance(handlers, Root)
    peer = handlers.peers[NodeName("c")]
    while not (peer.fetching and peer.next_index > 10):
        deliver(world, world["c"], 1)
    stale = (LogEntry(Term(1), b"cut"),) * 3
    root.replica.completed(Fetched(peer.name, peer.next_index, stale))
    root.do_effects()
    world.advance(1_000)
    assert world.log("c") == world.log("a")


def test_a_backup_that_has_more_than_the_snapshot_continues_from_its_own_log() -> None:
    """A root whose disk cannot read an entry sends the newest snapshot that it has, which may be older."""
    world = World("abc")
    root = world.elect("a")
    for number in range(30):
        root.propose(b"message %d" % number)
    world.advance(500)
    root.store.compact(5)
    world.settle()
    handlers = root.replica._core.handlers
    assert isinstance(handlers, Root)
    peer = handlers.peers[NodeName("c")]
    peer.fetching = True
    root.replica.completed(Missing(peer.name, peer.next_index))
    root.do_effects()
    assert peer.phase is ProgressState.SNAPSHOT
    world.settle()
    assert peer.next_index == root.replica.view().last_index + 1
    root.propose(b"after")
    world.settle()
    assert world.log("c") == world.log("a")


def test_a_snapshot_of_an_older_epoch_does_not_replace_a_log_that_has_a_newer_one() -> None:
    world = World("abc")
    late = behind(world)
    begin_transfer(world, late)
    incoming = late.replica._core.incoming
    assert incoming is not None and not incoming.installing
    world["a"].crash()
    world["b"].crash()
    world.advance(2_000)
    late.replica.promote([NodeName("a"), NodeName("b")], "first")
    late.do_effects()
    world.elect("c").propose(b"new")
    world.settle()

    # The disk says only now that it has the last piece.
    core = late.replica._core
    core.incoming, incoming.whole, incoming.offered = incoming, True, incoming.taken + 1
    late.replica.completed(PieceTaken(incoming.source, incoming.taken, False))
    assert not any(isinstance(effect, InstallSnapshot) for effect in late.replica.take_effects())
    assert core.incoming is None


def test_a_broker_whose_store_is_being_replaced_begins_no_epoch() -> None:
    """The entry with which the epoch begins would be gone with the old store."""
    world = World("abc")
    late = behind(world)
    begin_transfer(world, late)
    while (incoming := late.replica._core.incoming) is None or not incoming.installing:
        deliver(world, late, 1)
    late.disk_works = False
    world["a"].crash()
    world["b"].crash()
    world.advance(2_000)
    late.replica.promote([NodeName("a"), NodeName("b")], "first")
    late.do_effects()
    world.advance(5_000)
    ended = late.take_told(ChangeEnded)[-1]
    assert isinstance(ended, ChangeEnded) and not ended.done and "snapshot" in ended.text
    late.disk_works = True
    world.advance(2_000)
    assert late.store.durable.snapshot_index == incoming.index
    late.replica.promote([NodeName("a"), NodeName("b")], "first")
    late.do_effects()
    assert world.elect().name == "c"
