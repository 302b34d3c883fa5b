"""A store that may have lost what it said it had knows it: the machine was restarted, and not all was synced."""

from __future__ import annotations

import msgspec
import pytest

from pandomq.journal.limits import Fsync
from pandomq.sim.disks.files import Loss
from tests.unit.journal.store import SMALL, Store

LAZY = [Fsync.INTERVAL, Fsync.NEVER]


def used(fsync: Fsync, boot_id: str = "first") -> Store:
    store = Store(settings=msgspec.structs.replace(SMALL, fsync=fsync))
    store.boot_id = boot_id
    store.disk.crash(Loss.NONE)
    store.start()
    store.open()
    store.append(b"one")
    store.sync()
    store.settle()
    return store


def in_doubt(store: Store, boot_id: str) -> bool:
    store.boot_id = boot_id
    store.start()
    store.open()
    return store.journal.store_identity.state.doubtful


@pytest.mark.parametrize("fsync", LAZY)
def test_a_log_is_in_doubt_after_a_restart_of_the_machine_and_not_of_the_process(fsync: Fsync) -> None:
    store = used(fsync)
    store.disk.crash(Loss.NONE)
    assert not in_doubt(store, "first")
    store.disk.crash(Loss.ALL)
    assert in_doubt(store, "second")


def test_a_log_that_syncs_every_entry_is_never_in_doubt() -> None:
    store = used(Fsync.ALWAYS)
    store.disk.crash(Loss.ALL)
    assert not in_doubt(store, "second")


def test_doubt_depends_on_the_fsync_setting_at_the_time_of_writing() -> None:
    store = used(Fsync.INTERVAL)
    store.disk.crash(Loss.ALL)
    store.settings = msgspec.structs.replace(SMALL, fsync=Fsync.ALWAYS)
    assert in_doubt(store, "second")


@pytest.mark.parametrize("fsync", LAZY)
def test_a_clean_end_leaves_no_doubt(fsync: Fsync) -> None:
    store = used(fsync)
    store.journal.close()
    store.pump()
    store.settle()
    assert store.closed
    store.disk.crash(Loss.ALL)
    assert not in_doubt(store, "second")


def test_a_log_on_a_machine_without_a_boot_id_is_in_doubt() -> None:
    store = used(Fsync.INTERVAL, "")
    store.disk.crash(Loss.NONE)
    assert in_doubt(store, "")


def test_a_log_stays_in_doubt_until_the_owner_has_saved_its_decision() -> None:
    store = used(Fsync.INTERVAL)
    store.disk.crash(Loss.ALL)
    assert in_doubt(store, "second")
    store.disk.crash(Loss.ALL)
    assert in_doubt(store, "second")
    store.journal.save_state(store.journal.store_identity.state.hard)
    store.pump()
    store.settle()
    store.disk.crash(Loss.NONE)
    assert not in_doubt(store, "second")
