"""A flipped bit is noticed: when the store is opened, when what it hit is read, and by `verify` in any case."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq.journal.effects import FileName
from pandomq.journal.events import EntriesRead, FlawKind, Recovered
from pandomq.journal.faults import StoreFault
from pandomq.journal.inspection import Inspection, StoreReport
from pandomq.journal.layout import HEAD_BYTES, SLOT_BYTES, TABLE_OFFSET, body_offset
from pandomq.journal.segment import Segment
from pandomq.sim.disk import NEVER_MS
from pandomq.sim.files import Loss
from tests.unit.journal.store import SMALL, Store


def verify(store: Store, *, deep: bool = True) -> StoreReport:
    inspection = Inspection(deep=deep, settings=SMALL)
    inspection.open()
    store.disk.submit(inspection.take_requests(), store.now_ms)
    while not inspection.over:
        assert store.disk.next_ms != NEVER_MS
        store.now_ms = max(store.now_ms, store.disk.next_ms)
        for completion in store.disk.take_completions(store.now_ms):
            inspection.completed(completion)
            store.disk.submit(inspection.take_requests(), store.now_ms)
    return inspection.report()


def filled(seed: int, *, snapshots: bool = True) -> Store:
    """A store with a bit of everything: segments, pages, two snapshots, a tail after them."""
    random = Random(seed)
    store = Store(seed)
    store.open()
    for round_number in range(3):
        for _ in range(20):
            bodies = [random.randbytes(random.randint(1, 900)) for _ in range(random.randint(1, 4))]
            gone = [number for number in store.owner.numbers if number % 5 and random.random() < 0.2]
            store.append(*bodies, released=gone)
            store.page_out(random.choice((0, 3)))
            store.save()
        if round_number < 2 and snapshots:
            store.snapshot()
            store.settle()
    return store


def parts(store: Store) -> dict[FileName, list[tuple[int, int]]]:
    """Where every byte counts, by file: from, to."""
    found: dict[FileName, list[tuple[int, int]]] = {}
    for stored in store.journal._catalogue:
        if isinstance(stored, Segment):
            ends = [*stored.positions[1:], stored.end]
            sizes = [
                32 + len(store.history[index - 1][1]) for index in range(stored.first_index, stored.last_index + 1)
            ]
            assert all(at + size <= end for at, size, end in zip(stored.positions, sizes, ends, strict=True))
            found[stored.file] = [
                (0, 512),
                (512, 1024),
                (TABLE_OFFSET, TABLE_OFFSET + len(stored.positions) * SLOT_BYTES),
                *((at, at + size) for at, size in zip(stored.positions, sizes, strict=True)),
            ]
        else:
            found[stored.file] = [(0, 512), (4096, stored.size_bytes)]
    sizes_by_file = store.disk.sizes()
    for file in store.files("snapshot"):
        found[file] = [(0, sizes_by_file[file])]
    return found


@settings(max_examples=150)
@given(seed=st.integers(0, 30), choice=st.integers(0, 2**32), snapshots=st.booleans())
def test_verify_notices_every_flipped_bit(seed: int, choice: int, snapshots: bool) -> None:
    store = filled(seed, snapshots=snapshots)
    random = Random(choice)
    found = parts(store)
    file = random.choice(sorted(found))
    start, end = random.choice(found[file])
    store.disk.crash(Loss.ALL)
    assert verify(store).sound
    store.disk.flip_bit(file, random.randrange(start * 8, end * 8))
    report = verify(store)
    assert not report.sound, (file, start, end)
    if report.damage is not None:
        assert report.damage.file == file and body_offset(SMALL.slot_count) <= report.damage.offset < end


@settings(max_examples=150)
@given(seed=st.integers(0, 30), choice=st.integers(0, 2**32), snapshots=st.booleans(), synced=st.booleans())
def test_a_flipped_bit_never_loses_or_changes_anything_in_silence(
    seed: int, choice: int, snapshots: bool, synced: bool
) -> None:
    store = filled(seed, snapshots=snapshots)
    if not synced:
        store.append(b"never synced" * 50)
        store.sync()
    random = Random(choice)
    store.disk.crash(Loss.SOME)
    sizes = store.disk.sizes()
    file = random.choice(sorted(file for file in sizes if sizes[file]))
    store.disk.flip_bit(file, random.randrange(sizes[file] * 8))
    store.start()
    try:
        recovered = store.open()
    except StoreFault:
        return
    if recovered.damage is not None:
        assert recovered.damage.known_index >= store.durable
        return
    assert recovered.last_index >= store.durable
    assert store._agrees(store.history)
    del store.history[recovered.last_index :]
    try:
        store.check_state()
    except StoreFault:
        # Pages are not read at a restart: who reads them notices.
        return
    except AssertionError:
        # Nor are entries below the snapshot.
        assert [event.flaw for event in store.heard(EntriesRead) if event.flaw is not None]


def test_the_last_entry_and_its_slot_tell_on_each_other() -> None:
    for what in ("body", "slot"):
        store = filled(1, snapshots=False)
        segment = store.journal._catalogue.last
        assert isinstance(segment, Segment)
        place = len(segment.positions) - 1
        at = segment.positions[place] + 40 if what == "body" else TABLE_OFFSET + place * SLOT_BYTES + 3
        store.disk.crash(Loss.ALL)
        store.disk.flip_bit(segment.file, at * 8)
        store.start()
        recovered = store.open()
        if what == "body":
            assert recovered.damage is not None
            assert recovered.damage.index == store.durable == recovered.damage.known_index
            assert (recovered.damage.file, recovered.damage.offset) == (segment.file, segment.positions[place])
        else:
            assert recovered.damage is None and recovered.last_index == store.durable
            assert [flaw.kind for flaw in recovered.flaws] == [FlawKind.TABLE]
            store.crash(Loss.ALL)
            assert not store.open().flaws, "it was mended"


def test_a_file_cut_short_is_not_a_torn_tail() -> None:
    store = filled(2, snapshots=False)
    store.tick()
    store.settle()
    segment = store.journal._catalogue.last
    assert isinstance(segment, Segment)
    store.disk.crash(Loss.NONE)
    store.disk.truncate_file(segment.file, segment.positions[-1])
    store.start()
    recovered = store.open()
    assert recovered.damage is not None and recovered.damage.index == store.durable


@settings(max_examples=150)
@given(seed=st.integers(0, 30), choice=st.integers(0, 2**32), snapshots=st.booleans(), marked=st.booleans())
def test_a_file_cut_anywhere_loses_nothing_in_silence(seed: int, choice: int, snapshots: bool, marked: bool) -> None:
    store = filled(seed, snapshots=snapshots)
    if marked:
        store.tick()
        store.settle()
    random = Random(choice)
    store.disk.crash(Loss.NONE)
    sizes = store.disk.sizes()
    file = random.choice(sorted(file for file in sizes if sizes[file] and file.startswith("segment")))
    within = random.choice((HEAD_BYTES, TABLE_OFFSET, body_offset(SMALL.slot_count), sizes[file]))
    store.disk.truncate_file(file, random.randrange(min(within, sizes[file])))
    store.start()
    try:
        recovered = store.open()
    except StoreFault:
        return
    if recovered.damage is not None:
        assert recovered.damage.known_index >= store.durable or in_doubt(store)
    else:
        assert recovered.last_index >= store.durable and store._agrees(store.history)


def in_doubt(store: Store) -> bool:
    return store.journal.charter.state.doubtful


def last_segment(store: Store) -> Segment:
    segment = store.journal._catalogue.last
    assert segment is not None
    return segment


def cut_last(store: Store, size_bytes: int) -> Recovered:
    """The last segment is cut short while the broker is down."""
    segment = last_segment(store)
    store.disk.crash(Loss.NONE)
    store.disk.truncate_file(segment.file, size_bytes)
    store.start()
    return store.open()


@pytest.mark.parametrize("size_bytes", [HEAD_BYTES, TABLE_OFFSET, TABLE_OFFSET + SLOT_BYTES + 7])
@pytest.mark.parametrize("snapshot", [False, True])
def test_a_segment_cut_before_its_first_entry_is_not_a_torn_tail(size_bytes: int, snapshot: bool) -> None:
    """Also if the snapshot covers where it begins, and if no mark tells how far it went."""
    store = filled(5, snapshots=False)
    first_index = store.journal.last_index + 1
    while last_segment(store).first_index < first_index:
        store.append(bytes(900))
        store.save()
    if snapshot:
        store.snapshot()
        store.settle()
    store.append(b"one", b"two", b"three")
    store.save()
    begun = store.journal.last_index - 3 if snapshot else last_segment(store).first_index - 1
    damage = cut_last(store, size_bytes).damage
    assert damage is not None and damage.index == begun + 1
    assert damage.known_index < store.durable and not damage.end_known, "the table that told is gone"
    assert in_doubt(store)


def test_what_a_seal_or_a_whole_table_tells_is_no_reason_for_doubt() -> None:
    store = filled(2, snapshots=False)
    damage = cut_last(store, body_offset(SMALL.slot_count)).damage
    assert damage is not None and damage.known_index == store.durable and damage.end_known
    assert not in_doubt(store)


def test_a_doubt_stays_until_the_owner_has_drawn_its_conclusion() -> None:
    store = filled(2, snapshots=False)
    store.tick()
    store.settle()
    damage = cut_last(store, TABLE_OFFSET).damage
    assert damage is not None and in_doubt(store)
    store.crash(Loss.ALL)
    assert store.open().damage == damage and in_doubt(store)
    store.journal.truncate(damage.index, keep_aside=True)
    store.pump()
    store.settle()
    store.crash(Loss.ALL)
    assert store.open().damage is None and in_doubt(store)
    store.journal.save_state(store.hard_state)
    store.pump()
    store.settle()
    store.crash(Loss.ALL)
    assert store.open().damage is None and not in_doubt(store)


def test_a_lost_file_is_missed() -> None:
    journal = filled(3).journal
    used = [stored.file for stored in journal._catalogue if stored.last_index > journal.view().snapshot_index]
    assert len(used) > 3
    for file in [FileName("state"), *used]:
        store = filled(3)
        store.disk.crash(Loss.ALL)
        store.disk.lose_file(file)
        store.start()
        assert "missing" in complaint(store)


def complaint(store: Store) -> str:
    try:
        recovered = store.open()
    except StoreFault as fault:
        return str(fault)
    return recovered.damage.text if recovered.damage is not None else ""


def test_a_wiped_disk_is_a_new_store() -> None:
    store = filled(4)
    store.disk.wipe()
    store.start()
    assert store.open().last_index == 0
