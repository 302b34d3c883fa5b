"""A restart reads the newest good snapshot and the entries after it; a bad one costs time, not data."""

from __future__ import annotations

import errno

import pytest

from pandomq.ids import LogIndex
from pandomq.journal.effects import FileName, Lane, Read, Rename, Request, Write
from pandomq.journal.events import FlawKind, SnapshotFailed
from pandomq.journal.limits import SNAPSHOT_PIECE_BYTES_MAX
from pandomq.journal.names import snapshot_file
from pandomq.journal.snapshots.snapshot import OWN_KINDS
from pandomq.sim.disks.files import Loss
from tests.unit.journal.store import SMALL, Store


def with_snapshots(count: int, *, entries_after: int = 3) -> Store:
    store = Store()
    store.open()
    for number in range(count):
        store.append(*[b"body %d" % number * 20] * 10)
        store.save()
        store.snapshot()
        store.settle()
    for _ in range(entries_after):
        store.append(b"after")
    store.save()
    return store


def test_only_entries_after_the_snapshot_are_replayed() -> None:
    store = with_snapshots(3)
    store.crash(Loss.ALL)
    recovered = store.open()
    assert recovered.snapshot_index == 30
    assert [index for index, _, _ in store.replayed] == [31, 32, 33]
    store.check_state()


def test_two_are_kept() -> None:
    store = with_snapshots(5)
    assert store.files("snapshot") == [snapshot_file(40), snapshot_file(50)]


@pytest.mark.parametrize("damage", ["flip", "cut", "end"])
def test_a_bad_one_is_passed_over_for_the_older(damage: str) -> None:
    store = with_snapshots(3)
    newest = snapshot_file(30)
    size_bytes = store.disk.sizes()[newest]
    store.disk.crash(Loss.ALL)
    if damage == "flip":
        store.disk.flip_bit(newest, size_bytes * 4)
    else:
        store.disk.truncate_file(newest, size_bytes // 2 if damage == "cut" else size_bytes - 1)
    store.start()
    recovered = store.open()
    assert recovered.snapshot_index == 20
    assert [(flaw.kind, flaw.file) for flaw in recovered.flaws] == [(FlawKind.SNAPSHOT, newest)]
    assert [index for index, _, _ in store.replayed] == list(range(21, 34))
    store.check_state()


def test_an_unfinished_snapshot_is_removed() -> None:
    store = with_snapshots(1)
    store.journal.begin_snapshot(store.journal.last_index).add(1, b"half" * 1000)
    store.pump()
    store.settle()
    assert FileName(snapshot_file(13) + ".tmp") in store.disk.sizes()
    store.crash(Loss.NONE)
    store.check()
    assert store.recovered is not None and store.recovered.snapshot_index == 10
    assert not [file for file in store.disk.sizes() if file.endswith(".tmp")]


def test_a_snapshot_counts_only_when_its_entry_is_committed() -> None:
    store = Store(early=True)
    store.open()
    store.append(b"one")
    store.snapshot()
    store.settle()
    assert not store.saved_snapshots()
    store.save()
    assert store.saved_snapshots() == [1]


def test_appends_do_not_wait_for_it() -> None:
    store = Store()
    store.open()
    store.append(b"one")
    store.save()
    writer = store.journal.begin_snapshot(LogIndex(1))
    for _ in range(50):
        writer.add(1, b"p" * 500)
    store.append(b"two")
    store.journal.sync()
    requests = store.journal.take_requests()
    assert {request.lane for request in requests if isinstance(request.effect, Write)} == {Lane.LOG}
    assert writer.pending_bytes > 20_000
    store.disk.submit(requests, store.now_ms)
    writer.finish()
    store.pump()
    store.settle()
    assert store.saved_snapshots() == [1]


def test_a_snapshot_is_written_in_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    store.open()
    store.append(b"one")
    store.save()
    writer = store.journal.begin_snapshot(LogIndex(1))
    for _ in range(100):
        writer.add(1, b"p" * 500)
    writer.finish()
    sizes: list[int] = []
    submit = store.disk.submit

    def spy(requests: list[Request], now_ms: int) -> None:
        effects = [request.effect for request in requests if request.lane is Lane.BULK]
        sizes.extend(sum(map(len, effect.chunks)) for effect in effects if isinstance(effect, Write))
        sizes.extend(effect.length for effect in effects if isinstance(effect, Read))
        submit(requests, now_ms)

    monkeypatch.setattr(store.disk, "submit", spy)
    store.pump()
    store.settle()
    assert store.saved_snapshots()
    assert len(sizes) > 50 and max(sizes) <= 2 * SMALL.bulk_chunk_bytes


def test_want_of_space_gives_it_up_and_nothing_else() -> None:
    store = with_snapshots(1)
    store.disk.fail_next(Write, errno.ENOSPC)
    store.snapshot()
    store.settle()
    assert [event.reason for event in store.heard(SnapshotFailed)] == ["the disk is full"]
    store.append(b"goes on")
    store.save()
    store.snapshot()
    store.settle()
    store.crash(Loss.ALL)
    store.check()


def test_the_owner_of_a_snapshot_may_give_it_up() -> None:
    store = with_snapshots(1)
    writer = store.journal.begin_snapshot(store.journal.last_index)
    writer.add(1, b"half")
    writer.give_up("changed my mind")
    store.pump()
    store.settle()
    assert [event.reason for event in store.heard(SnapshotFailed)] == ["changed my mind"]
    assert len(store.files("snapshot")) == 1


def test_a_snapshot_that_cannot_be_read_back_does_not_count() -> None:
    store = with_snapshots(1)
    writer = store.journal.begin_snapshot(store.journal.last_index)
    writer.add(1, b"x" * 5000)
    writer.finish()
    store.pump()
    unfinished = FileName(snapshot_file(13) + ".tmp")
    while store.disk.sizes().get(unfinished, 0) < 5000:
        store.step()
    store.disk.flip_bit(unfinished, 20_000)
    store.settle()
    assert "damaged at offset" in store.heard(SnapshotFailed)[0].reason
    assert len(store.files("snapshot")) == 1


def test_limits_of_pieces() -> None:
    store = with_snapshots(1)
    writer = store.journal.begin_snapshot(store.journal.last_index)
    with pytest.raises(ValueError, match="at most"):
        writer.add(0, bytes(SNAPSHOT_PIECE_BYTES_MAX + 1))
    with pytest.raises(AssertionError):
        writer.add(OWN_KINDS, b"")


def test_a_snapshot_is_due_when_the_log_has_grown() -> None:
    store = Store()
    store.open()
    assert not store.journal.snapshot_due
    while not store.journal.snapshot_due:
        store.append(b"x" * 1000)
        store.save()
    assert 16 <= store.journal.last_index <= 17
    store.snapshot()
    assert not store.journal.snapshot_due
    store.settle()
    assert not store.journal.snapshot_due


def test_a_failed_rename_is_final() -> None:
    store = with_snapshots(1)
    store.disk.fail_next(Rename, errno.EIO)
    store.snapshot()
    with pytest.raises(Exception, match="cannot rename"):
        store.settle()
