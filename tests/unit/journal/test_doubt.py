"""A store that may have lost what it said it had knows it: the machine was restarted, and not all was synced."""

from __future__ import annotations

import msgspec
import pytest

from pandomq.journal.limits import Fsync
from pandomq.sim.files import Loss
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
    return store.journal.charter.state.doubtful


@pytest.mark.parametrize("fsync", LAZY)
def test_it_is_in_doubt_after_a_restart_of_the_machine_and_not_of_the_process(fsync: Fsync) -> None:
    store = used(fsync)
    store.disk.crash(Loss.NONE)
    assert not in_doubt(store, "first")
    store.disk.crash(Loss.ALL)
    assert in_doubt(store, "second")


def test_one_that_syncs_everything_is_never_in_doubt() -> None:
    store = used(Fsync.ALWAYS)
    store.disk.crash(Loss.ALL)
    assert not in_doubt(store, "second")


def test_what_counts_is_how_it_was_written_and_not_how_it_will_be() -> None:
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


def test_where_nobody_can_tell_it_is_in_doubt() -> None:
    store = used(Fsync.INTERVAL, "")
    store.disk.crash(Loss.NONE)
    assert in_doubt(store, "")


def test_the_doubt_stays_until_the_owner_has_saved_what_it_makes_of_it() -> None:
    store = used(Fsync.INTERVAL)
    store.disk.crash(Loss.ALL)
    assert in_doubt(store, "second")
    store.disk.crash(Loss.ALL)
    assert in_doubt(store, "second")
    store.journal.save_state(store.journal.charter.state.hard)
    store.pump()
    store.settle()
    store.disk.crash(Loss.NONE)
    assert not in_doubt(store, "second")
