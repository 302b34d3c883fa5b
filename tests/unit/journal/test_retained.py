"""Segments that may go are put aside for an audit, within the limits that were set, and stand in nobody's way."""

from __future__ import annotations

from random import Random

import msgspec

from pandomq.journal.effects import FileName, Rename
from pandomq.journal.names import retained_file, retained_number, segment_number
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.segments.retained import Retained
from pandomq.journal.segments.segment import Segment
from pandomq.journal.space import Space
from pandomq.sim.disks.files import Loss
from tests.unit.journal.store import SMALL, Store
from tests.unit.journal.test_reclaiming import churn

RETAINING = msgspec.structs.replace(SMALL, retain_bytes=64 * 1024)


def retained_files(store: Store) -> list[int]:
    return sorted(number for file in store.disk.sizes() if (number := retained_number(file)) is not None)


def segment_files(store: Store) -> list[int]:
    return sorted(number for file in store.disk.sizes() if (number := segment_number(file)) is not None)


def test_retained_segments_are_kept_whole_up_to_a_size_and_the_oldest_go() -> None:
    store, bare = Store(settings=RETAINING), Store()
    for one in (store, bare):
        one.open()
        churn(one, 120, kept_every=1000, random=Random(1))
    assert not retained_files(bare)
    kept = retained_files(store)
    assert len(kept) > 3
    assert kept[-1] < segment_files(store)[0], "what is retained comes before what is needed"
    sizes = store.disk.sizes()
    assert sum(sizes[retained_file(number)] for number in kept) <= RETAINING.retain_bytes
    churn(store, 60, kept_every=1000, random=Random(2))
    later = retained_files(store)
    assert later[0] > kept[0], "the oldest have gone"
    store.crash(Loss.ALL)
    store.check()


def test_retained_segments_are_known_after_a_restart_and_no_number_is_used_twice() -> None:
    store = Store(settings=RETAINING)
    store.open()
    churn(store, 120, kept_every=1000, random=Random(3))
    kept = retained_files(store)
    assert kept
    store.crash(Loss.ALL)
    store.check()
    churn(store, 60, kept_every=1000, random=Random(4))
    sizes = store.disk.sizes()
    assert sum(sizes[retained_file(number)] for number in retained_files(store)) <= RETAINING.retain_bytes
    assert not set(retained_files(store)) & set(segment_files(store))
    store.settings = SMALL
    store.crash(Loss.ALL)
    store.check()
    store.now_ms += 2_000
    store.tick()
    store.settle()
    assert not retained_files(store), "nothing is to be kept any more"


def test_age_counts_from_when_it_was_put_aside_or_the_store_was_opened() -> None:
    space = Space(SMALL, DiskRequests(), lambda _: None)
    settings = msgspec.structs.replace(SMALL, retain_bytes=10**6, retain_ms=1000)
    retained = Retained(settings, space, {retained_file(1): 10, FileName("segment-000000000002.log"): 10})
    assert retained.take_overdue() == [], "before the first tick nobody knows the time"
    retained.tick(5_000)
    assert retained.take_overdue() == []
    retained.tick(5_500)
    segment = Segment(3, 1, 1, 16, 100)
    assert retained.put_away(segment) == Rename(segment.file, retained_file(3))
    retained.tick(6_000)
    assert retained.take_overdue() == [retained_file(1)]
    retained.tick(6_499)
    assert retained.take_overdue() == []
    retained.tick(6_500)
    assert retained.take_overdue() == [retained_file(3)]


def test_a_disk_that_is_nearly_full_has_no_room_for_them() -> None:
    space = Space(SMALL, DiskRequests(), lambda _: None)
    settings = msgspec.structs.replace(SMALL, retain_bytes=10**6)
    retained = Retained(settings, space, {retained_file(1): 10, retained_file(2): 10})
    retained.tick(1)
    space.low = True
    assert retained.take_overdue() == [retained_file(1), retained_file(2)]
    segment = Segment(3, 1, 1, 16, 100)
    assert not isinstance(retained.put_away(segment), Rename)
