"""A flipped bit is noticed: when the store is opened, when what it hit is read, and by `verify` in any case."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pandomq.ids import LogIndex
from pandomq.journal.checksums import CHAIN_START, chain_next, entry_checksum
from pandomq.journal.effects import FileName
from pandomq.journal.events import EntriesRead, FlawKind, Recovered
from pandomq.journal.faults import StoreFault
from pandomq.journal.limits import SECTOR_BYTES
from pandomq.journal.recovery.offline_scan import OfflineScan, StoreReport
from pandomq.journal.segments.layout import HEAD_BYTES, OPENING_SECTOR, SLOT_BYTES, TABLE_OFFSET, body_offset
from pandomq.journal.segments.segment import Segment
from pandomq.sim.disks.disk import NEVER_MS
from pandomq.sim.disks.files import Loss
from tests.support.examples import examples
from tests.unit.journal.store import SMALL, Store


def verify(store: Store, *, deep: bool = True) -> StoreReport:
    offline_scan = OfflineScan(deep=deep, settings=SMALL)
    offline_scan.open()
    store.disk.submit(offline_scan.take_requests(), store.now_ms)
    while not offline_scan.over:
        assert store.disk.next_ms != NEVER_MS
        store.now_ms = max(store.now_ms, store.disk.next_ms)
        for completion in store.disk.take_completions(store.now_ms):
            offline_scan.completed(completion)
            store.disk.submit(offline_scan.take_requests(), store.now_ms)
    return offline_scan.report()


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


@settings(max_examples=examples(150))
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


@settings(max_examples=examples(150))
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
    check_chains(store)
    del store.history[recovered.last_index :]
    try:
        store.check_state()
    except StoreFault:
        # Pages are not read at a restart: who reads them notices.
        return
    except AssertionError:
        # Nor are entries below the snapshot.
        assert [event.flaw for event in store.heard(EntriesRead) if event.flaw is not None]


def check_chains(store: Store) -> None:
    """The chain is told for every entry after the snapshot, and nowhere is it another than that of the log."""
    assert store.recovered is not None
    chain = CHAIN_START
    for index, (term, payload) in enumerate(store.history[: store.journal.last_index], start=1):
        chain = chain_next(chain, entry_checksum(index, term, payload))
        told = store.journal.chain_at(LogIndex(index))
        assert told == chain or (told is None and index <= store.recovered.snapshot_index), index


def with_damaged_head() -> Store:
    """A snapshot was taken in the middle of the last segment, and then the head of that segment lost its account of
    what came before."""
    store = filled(6, snapshots=False)
    while len(last_segment(store).positions) < 5:
        store.append(b"more")
        store.save()
    store.snapshot()
    store.settle()
    store.append(*(b"after %d" % number for number in range(8)))
    store.save()
    segment = last_segment(store)
    assert segment.first_index < store.saved_snapshots()[-1] < segment.last_index
    store.disk.crash(Loss.ALL)
    store.disk.flip_bit(segment.file, (OPENING_SECTOR * SECTOR_BYTES + 500) * 8 + 3)
    store.start()
    return store


def test_a_segment_whose_head_was_damaged_still_gives_the_chain_of_its_log() -> None:
    store = with_damaged_head()
    assert [flaw.kind for flaw in store.open().flaws] == [FlawKind.HEAD]
    check_chains(store)
    store.append(b"one", b"two")
    store.save()
    check_chains(store)
    store.crash(Loss.ALL)
    assert not store.open().flaws, "it was mended"
    check_chains(store)


@pytest.mark.parametrize("what", ["cut", "snapshot"])
def test_a_log_goes_on_behind_a_segment_whose_head_was_damaged(what: str) -> None:
    """A cut and a snapshot in the middle of that segment note the chain on the disk. If it were another, the segment
    that follows would seem to continue another log."""
    store = with_damaged_head()
    commit = store.journal.commit
    store.journal.commit = lambda index: None  # type: ignore[method-assign]
    last_index = store.open().last_index
    damaged = last_segment(store)
    store.journal.commit = commit  # type: ignore[method-assign]
    if what == "cut":
        store.journal.truncate(LogIndex(last_index - 2), keep_aside=False)
        del store.history[last_index - 3 :]
    else:
        store.journal.commit(LogIndex(last_index - 3))
        store.journal.begin_snapshot(LogIndex(last_index - 3)).finish()
    store.pump()
    store.settle()
    while last_segment(store) is damaged:
        store.append(bytes(900))
        store.save()
    store.crash(Loss.ALL)
    recovered = store.open()
    assert recovered.damage is None and recovered.last_index == len(store.history)
    check_chains(store)


def test_damage_to_the_last_entry_or_its_slot_is_found() -> None:
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


@settings(max_examples=examples(150))
@given(seed=st.integers(0, 30), choice=st.integers(0, 2**32), snapshots=st.booleans(), marked=st.booleans())
@example(seed=0, choice=4335, snapshots=False, marked=False)
def test_a_file_cut_anywhere_loses_nothing_in_silence(seed: int, choice: int, snapshots: bool, marked: bool) -> None:
    """Without a mark nothing on the disk tells that the last group was synced: a file that lost its end there is like
    one whose end was never written (ADR 10). The part that is lost is named, and what came before it is not."""
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
        assert recovered.last_index >= (store.durable if marked else store.proven)
        assert recovered.last_index >= store.durable or recovered.torn is not None
        assert store._agrees(store.history)


@pytest.mark.parametrize("marked", [False, True])
def test_a_file_that_lost_its_last_group_looks_torn_until_a_mark_proves_the_sync(marked: bool) -> None:
    store = filled(0, snapshots=False)
    if marked:
        store.tick()
        store.settle()
    segment = last_segment(store)
    at = segment.positions[store.proven + 1 - segment.first_index]
    recovered = cut_last(store, at)
    if marked:
        assert recovered.damage is not None and recovered.damage.index == store.proven + 1
    else:
        assert recovered.damage is None and recovered.last_index == store.proven < store.durable
        assert recovered.torn is not None and recovered.torn.file == segment.file


def in_doubt(store: Store) -> bool:
    return store.journal.store_identity.state.doubtful


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
    """This holds even if the snapshot covers its beginning, and if no mark records its length."""
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


def test_a_log_that_ends_before_its_snapshot_has_the_term_of_the_snapshot() -> None:
    """A root compares the term of the last entry with its own. With an older one the broker would seem to hold another
    entry there than the one that is committed."""
    store = filled(5, snapshots=False)
    while len(last_segment(store).positions) < 3:
        store.append(b"old term")
        store.save()
    store.append(b"new term", term=store.journal.last_term + 1)
    store.save()
    store.snapshot()
    store.settle()
    snapshot_index, term = store.journal.last_index, store.journal.last_term
    recovered = cut_last(store, TABLE_OFFSET + SLOT_BYTES + 7)
    assert recovered.damage is not None and recovered.last_index == snapshot_index
    assert recovered.last_term == store.journal.term_at(snapshot_index) == term


def test_an_end_known_from_a_seal_or_a_whole_table_is_no_reason_for_doubt() -> None:
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
