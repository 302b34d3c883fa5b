"""Pages come back as they were put for as long as somebody wants them, and the disk does not grow with the others."""

from __future__ import annotations

import errno
from random import Random

import pytest

from pandomq.journal.effects import Create, Write
from pandomq.journal.events import FlawKind, PageFetched, SnapshotFailed, SpaceLow
from pandomq.journal.faults import CorruptFault
from pandomq.sim.disks.files import Loss
from tests.unit.journal.store import SMALL, Store
from tests.unit.journal.test_bit_rot import verify


def opened(seed: int = 0, capacity_bytes: int = 2**40) -> Store:
    store = Store(seed, capacity_bytes=capacity_bytes)
    store.open()
    return store


def with_pages(store: Store, count: int, *, size_bytes: int = 500) -> Store:
    """So many pages of four messages each."""
    random = Random(count)
    for _ in range(count):
        store.append(*[random.randbytes(size_bytes) for _ in range(4)])
        store.page_out(4)
    store.save()
    return store


def with_snapshot(store: Store) -> Store:
    store.snapshot()
    store.settle()
    assert not store.snapshot_active
    return store


def test_a_page_is_given_back_from_memory_until_it_is_written() -> None:
    store = opened()
    page = store.journal.pages.put(b"one")
    assert store.journal.pages.pending_bytes == 3
    store.journal.pages.fetch(page)
    assert [event.blob for event in store.journal.take_events() if isinstance(event, PageFetched)] == [b"one"]
    store.pump()
    store.settle()
    assert page.blob is None and store.journal.pages.pending_bytes == 0
    store.looked_at.add(page)
    store.journal.pages.fetch(page)
    store.pump()
    store.settle()
    assert store.fetched[page] == b"one"


def test_a_page_that_goes_before_it_is_written_costs_no_write() -> None:
    store = opened()
    pages = store.journal.pages
    kept, gone = pages.put(b"kept"), pages.put(b"gone")
    also = pages.put(b"also")
    pages.free(gone)
    store.pump()
    store.settle()
    (file,) = store.files("pages")
    assert store.disk.content(file)[512:] == b"kept" + bytes(4) + b"also"
    assert pages.live_bytes == 8 and pages.pending_bytes == 0 and not kept.freed and not also.freed


def test_pages_of_a_snapshot_are_there_after_a_crash_also_if_they_went_meanwhile() -> None:
    for seed in range(20):
        store = with_pages(opened(seed), 5)
        store.append(b"x" * 300)
        store.sync()
        store.page_out(1)
        store.snapshot()
        # They come back to memory, or are acked, while the snapshot is written: the log will tell, or not.
        for sheet in list(store.owner.sheets):
            store.owner.forget(sheet)
        store.pump()
        while store.snapshot_active:
            store.step()
        store.crash(Loss.ALL)
        store.check()
        assert store.recovered is not None and store.recovered.snapshot_index == store.recovered.last_index


def test_a_file_goes_with_its_last_page() -> None:
    store = with_pages(opened(), 20)
    files = store.files("pages")
    assert len(files) > 3
    store.append(b"", released=store.owner.numbers)
    store.save()
    assert len(store.files("pages")) <= 1, "only the newest is left, which gets more"


def test_a_file_stays_while_a_snapshot_that_is_kept_refers_to_it() -> None:
    store = with_snapshot(with_pages(opened(), 20))
    files = set(store.files("pages"))
    store.append(b"", released=store.owner.numbers)
    store.save()
    assert set(store.files("pages")) == files
    with_snapshot(store)
    assert set(store.files("pages")) == files, "the older one is there to fall back to"
    store.append(b"")
    store.save()
    with_snapshot(store)
    store.tick()
    store.settle()
    assert len(store.files("pages")) <= 1
    store.crash(Loss.ALL)
    store.check()


def test_page_files_that_only_snapshots_want_make_the_next_one_due() -> None:
    store = with_snapshot(with_pages(opened(), 20))
    store.append(b"", released=store.owner.numbers)
    store.save()
    assert not store.journal.snapshot_due
    store.tick()
    assert store.journal.snapshot_due


def test_a_sparse_file_is_swept() -> None:
    store = with_pages(opened(), 40)
    size_before = store.journal.pages.size_bytes
    kept = [sheet for place, sheet in enumerate(store.owner.sheets) if not place % 5]
    gone = [number for sheet in store.owner.sheets if sheet not in kept for number in sheet.numbers]
    store.append(b"", released=gone)
    store.save()
    store.tick()
    store.settle()
    pages = store.journal.pages
    assert pages.size_bytes < size_before / 2
    assert pages.size_bytes <= 2 * pages.live_bytes + 2 * SMALL.page_file_bytes
    store.check_state()
    with_snapshot(store)
    store.crash(Loss.ALL)
    store.check()


def test_pages_may_go_and_come_while_they_are_swept() -> None:
    for seed in range(30):
        random = Random(seed)
        store = with_pages(opened(seed), 30)
        for _ in range(60):
            sheets = store.owner.sheets
            if sheets and random.random() < 0.5:
                numbers = sorted(random.choice(sheets).numbers)
                store.append(b"", released=numbers)
            elif random.random() < 0.3:
                store.load(random.randrange(100))
            else:
                store.page_out(4)
            store.step()
        store.save()
        store.check_state()


def test_churn_does_not_grow_the_disk() -> None:
    store = opened()
    random = Random(5)
    sizes = []
    for _ in range(400):
        store.append(*[random.randbytes(400) for _ in range(4)])
        store.page_out(4)
        if len(store.owner.sheets) > 20:
            sheet = random.choice(store.owner.sheets)
            store.append(b"", released=sorted(sheet.numbers))
        if store.journal.snapshot_due:
            store.snapshot()
        store.save()
        store.tick()
        store.settle()
        sizes.append(sum(store.disk.sizes().values()))
    assert max(sizes[200:]) <= max(sizes[:200]) * 1.1


def test_pages_that_no_snapshot_knows_are_garbage_after_a_restart() -> None:
    store = with_pages(opened(), 10)
    assert store.files("pages")
    store.crash(Loss.NONE)
    store.check()
    store.settle()
    wanted = {sheet.page.file.file for sheet in store.owner.sheets}
    assert set(store.files("pages")) == wanted


def test_a_damaged_page_is_named_when_it_is_loaded_and_by_verify() -> None:
    store = with_snapshot(with_pages(opened(), 3))
    place = store.owner.sheets[1].page.place
    file = store.owner.sheets[1].page.file.file
    store.disk.crash(Loss.NONE)
    assert verify(store).sound
    store.disk.flip_bit(file, (place.offset + 100) * 8)
    report = verify(store)
    assert [(flaw.kind, flaw.file, flaw.offset) for flaw in report.flaws] == [(FlawKind.PAGE, file, place.offset)]
    store.start()
    store.open()
    with pytest.raises(CorruptFault, match=f"{file} is corrupt at offset {place.offset}") as caught:
        store.read_live()
    assert (caught.value.file, caught.value.offset) == (file, place.offset)


def test_without_the_pages_of_the_newest_snapshot_the_older_one_does() -> None:
    store = with_snapshot(with_pages(opened(), 3))
    older = set(store.files("pages"))
    with_snapshot(with_pages(store, 15))
    (*_, newest) = sorted(set(store.files("pages")) - older)
    store.disk.crash(Loss.NONE)
    store.disk.lose_file(newest)
    store.start()
    recovered = store.open()
    assert [flaw.kind for flaw in recovered.flaws] == [FlawKind.SNAPSHOT]
    assert recovered.last_index == store.durable
    store.check_state()


def test_a_damaged_head_of_a_page_file_is_reported_and_harms_nothing() -> None:
    store = with_snapshot(with_pages(opened(), 3))
    file = store.files("pages")[0]
    store.disk.crash(Loss.NONE)
    store.disk.flip_bit(file, 100)
    assert [flaw.kind for flaw in verify(store).flaws] == [FlawKind.HEAD]
    store.start()
    assert [flaw.kind for flaw in store.open().flaws] == [FlawKind.HEAD]
    store.check_state()


@pytest.mark.parametrize("kind", [Create, Write])
def test_on_a_full_disk_pages_stay_in_memory_until_there_is_room(kind: type[Create] | type[Write]) -> None:
    store = opened()
    store.append(b"x" * 600)
    store.save()
    store.disk.fail_next(kind, errno.ENOSPC)
    store.page_out(1)
    store.settle()
    pages = store.journal.pages
    assert pages.stalled and pages.pending_bytes and store.heard(SpaceLow)
    assert store.read_live() == {1: b"x" * 600}
    store.snapshot()
    store.settle()
    assert [event.reason for event in store.heard(SnapshotFailed)] == ["the disk is full"]
    store.tick()
    store.settle()
    assert not pages.stalled and not pages.pending_bytes
    with_snapshot(store)
    store.crash(Loss.ALL)
    store.check()


def test_a_page_larger_than_a_file_has_one_of_its_own() -> None:
    store = opened()
    store.append(b"x" * 50_000)
    store.page_out(1)
    store.append(b"y" * 50_000)
    store.page_out(1)
    store.save()
    assert len(store.files("pages")) == 2
    with_snapshot(store)
    store.crash(Loss.ALL)
    store.check()
