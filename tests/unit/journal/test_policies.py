"""The promises of `fsync`: all policies keep entries when the process dies, one of them also when the power fails."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pandomq.journal.effects import Lane, Request, SyncFile
from pandomq.journal.limits import Fsync
from pandomq.sim.disks.files import Loss
from tests.support.examples import examples
from tests.unit.journal.operations import OPERATIONS, Operation, program, run
from tests.unit.journal.store import SMALL, Store

LAZY = [Fsync.INTERVAL, Fsync.NEVER]


def with_policy(fsync: Fsync, seed: int = 0, *, early: bool = True) -> Store:
    return Store(seed, msgspec.structs.replace(SMALL, fsync=fsync), early=early)


@settings(max_examples=examples(100))
@given(
    seed=st.integers(0, 2**32),
    fsync=st.sampled_from(LAZY),
    early=st.booleans(),
    operations=st.lists(OPERATIONS, max_size=40),
)
def test_a_lazy_log_loses_its_end_and_nothing_else(
    seed: int, fsync: Fsync, early: bool, operations: list[Operation]
) -> None:
    run(with_policy(fsync, seed, early=early), operations)


@pytest.mark.parametrize("fsync", LAZY)
def test_so_do_longer_ones(fsync: Fsync) -> None:
    for seed in range(25):
        run(with_policy(fsync, seed, early=bool(seed % 2)), program(Random(seed), 80))


@pytest.mark.parametrize("fsync", LAZY)
def test_a_lazy_log_survives_the_end_of_the_process(fsync: Fsync) -> None:
    store = with_policy(fsync)
    store.open()
    for number in range(50):
        store.append(b"entry %d" % number * 40)
        store.save()
    assert store.durable == 50
    store.crash(Loss.NONE)
    store.check()
    assert store.journal.last_index == 50


@pytest.mark.proves("R23")
def test_within_the_interval_the_disk_gets_it() -> None:
    store = with_policy(Fsync.INTERVAL)
    store.open()
    for number in range(50):
        store.append(b"entry %d" % number * 40)
        store.save()
    assert store.journal.synced_index == 0
    store.tick(SMALL.fsync_interval_ms)
    store.settle()
    assert store.journal.synced_index == 50
    store.crash(Loss.ALL)
    store.check()
    assert store.journal.last_index == 50


def test_the_policy_never_syncs_only_for_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    store = with_policy(Fsync.NEVER)
    store.open()
    syncs: list[str] = []
    submit = store.disk.submit

    def spy(requests: list[Request], now_ms: int) -> None:
        effects = [request.effect for request in requests if request.lane is Lane.LOG]
        syncs.extend(effect.file for effect in effects if isinstance(effect, SyncFile))
        submit(requests, now_ms)

    monkeypatch.setattr(store.disk, "submit", spy)
    for number in range(50):
        store.append(b"entry %d" % number * 40)
        store.save()
        store.tick()
    assert not syncs
    store.snapshot()
    store.settle()
    assert store.saved_snapshots() == [50]
    assert store.journal.synced_index == 50
    store.crash(Loss.ALL)
    store.check()
    assert store.journal.last_index == 50


@pytest.mark.parametrize("fsync", list(Fsync))
def test_a_clean_end_leaves_everything_on_the_disk(fsync: Fsync) -> None:
    store = with_policy(fsync)
    store.open()
    for number in range(30):
        store.append(b"entry %d" % number * 40)
    store.close()
    store.durable = 30
    store.disk.crash(Loss.ALL)
    store.start()
    recovered = store.open()
    assert recovered.last_index == 30 and recovered.torn is None
