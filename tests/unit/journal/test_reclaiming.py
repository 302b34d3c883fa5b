"""Files that snapshots cover are deleted, and the disk does not grow."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from pandomq.ids import LogIndex, Term
from pandomq.journal.effects import Lane, Request
from pandomq.journal.segments import reclaimer
from pandomq.journal.segments.segment import Segment, SegmentList
from pandomq.sim.disks.files import Loss
from tests.unit.journal.store import SMALL, Store


def churn(store: Store, rounds: int, *, kept_every: int, kept_max: int = 40, random: Random) -> int:
    """Messages come and go; each so many-th stays for long. Returns the most bytes the disk ever held."""
    most = 0
    for _ in range(rounds):
        numbers = store.owner.numbers
        gone = [number for number in numbers if number % kept_every]
        kept = [number for number in numbers if not number % kept_every]
        gone += kept[: max(0, len(kept) - kept_max)]
        store.append(*[random.randbytes(random.randint(100, 900)) for _ in range(8)], released=gone)
        store.save()
        if store.journal.snapshot_due:
            store.snapshot()
        store.tick()
        store.settle()
        most = max(most, sum(store.disk.sizes().values()))
    return most


@pytest.mark.parametrize("kept_every", [1000, 20, 7, 2])
def test_churn_does_not_grow_the_disk(kept_every: int) -> None:
    store = Store()
    store.open()
    random = Random(kept_every)
    churn(store, 100, kept_every=kept_every, random=random)
    early = churn(store, 200, kept_every=kept_every, random=random)
    late = churn(store, 400, kept_every=kept_every, random=random)
    assert late <= early * 1.1
    assert len(store.disk.sizes()) < 40
    store.crash(Loss.ALL)
    store.check()


def test_the_chain_is_the_same_however_a_log_was_stored() -> None:
    """Two brokers with the same entries: one keeps all of them, the other reclaims and restarts."""
    store = Store()
    store.open()
    churn(store, 150, kept_every=10, random=Random(2))
    store.crash(Loss.ALL)
    store.check()
    twin = Store(9)
    twin.open()
    for term, payload in store.history:
        twin.history.append((term, payload))
        twin.journal.append(Term(term), payload)
        twin.apply_up_to(len(twin.history))
    twin.save()
    last = store.journal.last_index
    assert store.journal.chain_at(last) == twin.journal.chain_at(last)
    assert store.journal.first_index > 300
    for index in range(0, last + 1, 256):
        chain = store.journal.chain_at(LogIndex(index))
        assert chain is not None and chain == twin.journal.chain_at(LogIndex(index))
    assert store.journal.chain_at(LogIndex(100)) is None


def test_segments_covered_by_only_one_snapshot_are_not_deleted() -> None:
    store = Store()
    store.open()
    for _ in range(30):
        store.append(b"x" * 900, released=store.owner.numbers)
        store.save()
    store.snapshot()
    store.settle()
    assert store.journal.first_index == 1
    store.append(b"x", released=store.owner.numbers)
    store.save()
    store.snapshot()
    store.settle()
    assert store.journal.first_index > 1


def test_pinned_entries_are_not_reclaimed() -> None:
    store = Store()
    store.open()
    store.journal.pin(LogIndex(50))
    churn(store, 60, kept_every=10, random=Random(3))
    assert store.journal.first_index <= 50
    store.journal.pin(None)
    churn(store, 30, kept_every=10, random=Random(3))
    assert store.journal.first_index > 50


def test_entries_that_a_backup_reads_stay_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    store.open()
    store.journal.pin(None, 0, LogIndex(50))
    churn(store, 60, kept_every=10, random=Random(3))
    assert store.journal.first_index <= 50
    monkeypatch.setattr(reclaimer, "CATCH_UP_LOG_BYTES_MAX", 64 * 1024)
    churn(store, 30, kept_every=10, random=Random(3))
    assert store.journal.first_index > 50
    assert store.journal.bytes_after(LogIndex(store.journal.first_index - 1)) > 32 * 1024


def test_a_file_below_the_snapshots_that_has_lost_its_entries_counts_as_nothing() -> None:
    """A broker that counts the bytes after an older entry, since a backup needs the log from there, goes on."""
    catalogue = SegmentList()
    entry_bytes, body_offset = 100, 8_192
    for number, first_index in enumerate((1, 11, 21), start=1):
        segment = Segment(number, first_index, 0, 16, body_offset)
        if first_index != 11:
            segment.positions.extend(range(body_offset, body_offset + 10 * entry_bytes, entry_bytes))
            segment.end = body_offset + 10 * entry_bytes
        catalogue.add(segment)
    left = [*range(1, 11), *range(21, 31)]
    for index in range(31):
        assert catalogue.bytes_after(index) == entry_bytes * sum(one > index for one in left)


def test_a_file_stays_while_it_is_read() -> None:
    store = Store()
    store.open()
    for _ in range(30):
        store.append(b"x" * 900)
        store.save()
    old = store.files("segment")[0]
    store.journal.read(LogIndex(1), 1000)
    store.disk.submit(store.journal.take_requests(), store.now_ms + 10_000_000)
    for _ in range(2):
        store.append(b"x", released=store.owner.numbers)
        store.sync()
        while store.durable < store.journal.last_index:
            store.step()
        store.snapshot()
        while store.snapshot_active:
            store.step()
    for _ in range(30):
        store.tick(0)
    assert old in store.disk.sizes()
    store.settle()
    assert old not in store.disk.sizes()


def test_the_newest_segment_stays_until_the_next_one_is_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    # With little space one snapshot is enough for what it covers to go.
    store = Store(settings=msgspec.structs.replace(SMALL, disk_free_bytes_min=2**50))
    store.open()
    store.append(b"x" * 900)
    store.append(b"", released=[1])
    store.save()
    store.snapshot()
    store.settle()
    held: list[Request] = []
    submit = store.disk.submit

    def without_log(requests: list[Request], now_ms: int) -> None:
        held.extend(request for request in requests if request.lane is Lane.LOG)
        submit([request for request in requests if request.lane is not Lane.LOG], now_ms)

    monkeypatch.setattr(store.disk, "submit", without_log)
    store.append(b"too large for the rest of the segment" * 300)
    store.sync()
    for _ in range(3):
        store.tick()
        store.settle()
    assert store.files("segment")[0] == "segment-000000000001.log"
    monkeypatch.setattr(store.disk, "submit", submit)
    store.disk.submit(held, store.now_ms)
    store.settle()
    store.tick()
    store.settle()
    assert "segment-000000000001.log" not in store.files("segment")
    store.crash(Loss.ALL)
    store.check()


def test_small_settings_are_small() -> None:
    assert SMALL.slot_count == 16
