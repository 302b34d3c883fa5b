"""Appended and synced entries are there after a restart; unsynced ones may be."""

import pytest

from pandomq.journal.effects import SyncFile
from pandomq.journal.faults import StoreFault
from pandomq.sim.disks.files import Loss
from tests.unit.journal.store import Store


def test_a_new_store_is_empty() -> None:
    store = Store()
    recovered = store.open()
    assert (recovered.last_index, recovered.first_index, recovered.flaws) == (0, 1, ())


def test_entries_come_back_in_order() -> None:
    store = Store()
    store.open()
    for number in range(100):
        store.append(b"body %d" % number, b"x" * number)
        if number % 7 == 0:
            store.sync()
    store.save()
    assert store.durable == 200
    store.crash(Loss.ALL)
    store.check()
    assert store.journal.last_index == 200


def test_nothing_is_durable_before_its_sync() -> None:
    store = Store()
    store.open()
    store.append(b"one")
    store.settle()
    assert store.durable == 0
    store.crash(Loss.ALL)
    store.check()
    assert store.journal.last_index == 0


def test_a_failed_sync_is_final() -> None:
    store = Store()
    store.open()
    store.append(b"one")
    store.save()
    store.append(b"two")
    store.disk.fail_next(SyncFile, 5)
    with pytest.raises(StoreFault, match="cannot sync segment"):
        store.save()
    with pytest.raises(StoreFault):
        store.append(b"three")
    assert store.durable == 1
    assert not store.journal.take_requests()


def test_a_disk_that_is_slow_moves_and_one_that_stalls_does_not() -> None:
    store = Store()
    store.open()
    for number in range(3):
        store.journal.note_time(1_000 + number)
        store.append(b"x" * 5_000)
        store.sync()
    assert store.journal.waiting_since_ms == 1_000
    store.journal.note_time(5_000)
    while store.durable < 1:
        store.step()
    assert store.journal.waiting_since_ms == 5_000
    store.settle()
    assert store.journal.waiting_since_ms is None


def test_a_large_entry_has_a_segment_of_its_own() -> None:
    store = Store()
    store.open()
    store.append(b"small")
    store.append(b"L" * 100_000)
    store.append(b"small again")
    store.save()
    assert len(store.files("segment")) >= 3
    store.crash()
    store.check()


def test_entries_can_be_read_before_the_disk_has_them() -> None:
    store = Store()
    store.open()
    store.append(b"one")
    store.save()
    store.append(b"two", b"three")
    assert [entry[2] for entry in store.read_all()] == [payload for _, payload in store.history]
    store.sync()
    assert [entry[2] for entry in store.read_all()] == [payload for _, payload in store.history]
