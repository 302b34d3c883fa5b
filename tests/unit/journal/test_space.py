"""A disk that fills up: publishers are held back in time, acks and compaction go on, and nothing is corrupted."""

from __future__ import annotations

import errno
from random import Random

import msgspec
import pytest

from pandomq.journal.effects import Create, Delete, Rename, SyncDirectory, SyncFile, Write
from pandomq.journal.events import SpaceBack, SpaceLow
from pandomq.journal.faults import DiskFullFault, StoreFault
from pandomq.sim.disks.files import Loss
from tests.unit.journal.operations import perform, program
from tests.unit.journal.store import SMALL, Store


def fill(store: Store, count: int) -> None:
    for _ in range(count):
        store.append(b"x" * 700)
        store.save()


WATCHFUL = msgspec.structs.replace(SMALL, disk_free_bytes_min=40_000)


def test_below_the_watermark_publishers_are_to_be_held_back() -> None:
    store = Store(settings=WATCHFUL, capacity_bytes=120_000)
    store.open()
    while not store.heard(SpaceLow):
        store.append(b"x" * 900)
        store.save()
        store.tick()
        store.settle()
    assert store.heard(SpaceLow)[-1].free_bytes < 40_000
    assert not store.heard(SpaceBack)
    # Consumers empty the queues; snapshots become due at once, and what is dead goes.
    while not store.heard(SpaceBack):
        store.append(b"", released=store.owner.numbers[:20])
        store.save()
        if store.journal.snapshot_due:
            store.snapshot()
        store.tick()
        store.settle()
        assert store.journal.last_index < 2000
    store.crash(Loss.ALL)
    store.check()


def test_the_alarm_does_not_flicker() -> None:
    store = Store(settings=WATCHFUL, capacity_bytes=2**30)
    store.open()
    used_bytes = sum(store.disk.sizes().values()) + WATCHFUL.reserve_bytes
    for free_bytes in (39_999, 41_000, 39_000, 44_000, 45_100, 44_000):
        store.disk.capacity_bytes = used_bytes + free_bytes
        store.tick()
        store.settle()
    assert [event.free_bytes for event in store.heard(SpaceLow)] == [39_999]
    assert [event.free_bytes for event in store.heard(SpaceBack)] == [45_100]


def test_a_full_disk_ends_the_broker_and_corrupts_nothing() -> None:
    store = Store(capacity_bytes=80_000)
    store.open()
    with pytest.raises(DiskFullFault, match="Free some space"):
        fill(store, 1000)
    durable = store.durable
    assert durable > 20
    store.disk.capacity_bytes = 2**30
    store.crash(Loss.SOME)
    store.check()
    assert store.durable >= durable


def test_the_reserve_is_given_up_for_the_log() -> None:
    store = Store(capacity_bytes=2**30)
    store.open()
    store.append(b"one")
    store.save()
    assert "reserve" in store.disk.sizes()
    used_bytes = store.disk._directory.used_bytes
    store.disk.capacity_bytes = used_bytes + 1000
    for _ in range(14):
        store.append(b"x" * 500)
        store.save()
    assert "reserve" not in store.disk.sizes()
    assert store.heard(SpaceLow)
    store.disk.capacity_bytes = 2**30
    store.tick()
    store.settle()
    store.tick()
    store.settle()
    assert "reserve" in store.disk.sizes()


def test_a_spare_that_cannot_be_made_is_tried_again() -> None:
    store = Store()
    store.open()
    store.append(b"one")
    store.save()
    store.disk.fail_next(Create, errno.ENOSPC, 3)
    for _ in range(12):
        store.append(b"x" * 400)
        store.save()
    store.tick()
    for _ in range(40):
        store.append(b"x" * 400)
        store.save()
    store.crash()
    store.check()


def test_a_segment_that_is_needed_and_cannot_be_made_is_the_end() -> None:
    store = Store()
    store.open()
    store.disk.fail_next(Create, errno.EIO)
    with pytest.raises(StoreFault, match="cannot create segment"):
        fill(store, 60)


def test_a_disk_that_is_full_at_any_moment_corrupts_nothing() -> None:
    full = 0
    for seed in range(40):
        random = Random(seed)
        store = Store(seed, capacity_bytes=random.randint(30_000, 150_000))
        try:
            store.open()
            for operation in program(random, 80):
                perform(store, operation)
        except DiskFullFault:
            full += 1
        store.disk.capacity_bytes = 2**30
        store.crash(random.choice(list(Loss)))
        store.check()
    assert full > 10


def test_a_disk_that_fails_at_any_moment_loses_nothing() -> None:
    failed = 0
    for seed in range(60):
        random = Random(seed)
        store = Store(seed)
        store.open()
        kind = random.choice((Write, SyncFile, SyncDirectory, Rename, Delete, Create))
        try:
            for operation in program(random, 40):
                perform(store, operation)
            store.disk.fail_next(kind, errno.EIO)
            for operation in program(random, 40):
                perform(store, operation)
        except StoreFault:
            failed += 1
        store.disk.heal()
        store.crash(random.choice(list(Loss)))
        store.check()
    assert failed > 20
