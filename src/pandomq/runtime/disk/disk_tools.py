"""Reads and repairs stores, from outside of a broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import msgspec

from pandomq.broker.log.snapshot import without_pages
from pandomq.ids import ClusterId, LogIndex, NodeName
from pandomq.journal.events import Closed, Event, FlawKind, HardStateSaved, Recovered, RecoveryProgress, Truncated
from pandomq.journal.faults import StoreFault, in_use
from pandomq.journal.journal import Journal
from pandomq.journal.limits import JournalSettings
from pandomq.journal.names import STATE
from pandomq.journal.recovery.offline_scan import OfflineScan, StoreReport
from pandomq.runtime.disk.disk import InlineDisk
from pandomq.runtime.disk.disk_lock import DirectoryLock, lock_holder

STORE_DIRECTORY = "store"
"""The directory of a broker's log, within its data directory."""

Show = Callable[[RecoveryProgress], None]
E = TypeVar("E", bound=Event)


class Repair(msgspec.Struct, frozen=True):
    cut_from: int = 0
    """The first entry that was cut off; 0 if none was."""
    cut_to: int = 0
    """The last one that is known to have existed."""
    aside: str = ""
    """The file that keeps what was cut off."""
    pages: int = 0
    """Damaged pages of messages that the broker will do without."""
    pages_aside: str = ""
    """The file that keeps them."""
    mended: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """Damage that could not be repaired."""


def store_in(directory: Path) -> Path:
    """The store itself, for its own directory or the data directory of its broker."""
    inner = directory / STORE_DIRECTORY
    return inner if inner.is_dir() and not (directory / STATE).exists() else directory


def inspect_store(directory: Path, show: Show, *, deep: bool) -> StoreReport:
    """Raises InUseFault for a deep scan while a broker uses the store: concurrent changes would look like
    damage."""
    store = store_in(directory)
    if not store.is_dir():
        raise StoreFault(f"{directory} is not a directory")
    holder = lock_holder(store)
    if deep and holder is not None:
        raise in_use(str(store), holder)
    offline_scan = OfflineScan(deep=deep)
    offline_scan.open()
    _carry_out(offline_scan, store, show)
    return offline_scan.report()


def _carry_out(offline_scan: OfflineScan, store: Path, show: Show) -> None:
    disk = InlineDisk(store)
    try:
        while not offline_scan.over:
            disk.submit(offline_scan.take_requests())
            for completion in disk.take_completions():
                offline_scan.completed(completion)
            for progress in offline_scan.take_progress():
                show(progress)
    finally:
        disk.close()


def repair_store(directory: Path, show: Show, settings: JournalSettings | None = None) -> Repair:
    """Repairs flaws, cuts the log at the first damage, and keeps the removed bytes in a file. Raises StoreFault if that
    is impossible."""
    report = inspect_store(directory, show, deep=True)
    if report.fault:
        raise StoreFault(report.fault)
    if report.new:
        raise StoreFault(f"directory '{directory}' contains no store: give the data directory of a broker")
    store = store_in(directory)
    lock = DirectoryLock(store)
    pages_aside = ""
    try:
        if report.damaged_pages:
            pages_aside = _forget_pages(store, show)
        workshop = _Workshop(store, report, settings or JournalSettings(), show)
        recovered = workshop.open()
        aside = "" if recovered.damage is None else workshop.cut(recovered.damage.index)
        workshop.close()
    finally:
        lock.release()
    after = inspect_store(directory, show, deep=True)
    left = {f"{flaw.file} at {flaw.offset}: {flaw.text}" for flaw in after.flaws}
    # Pages are abandoned, not repaired.
    mendable = [flaw for flaw in report.flaws if flaw.kind is not FlawKind.PAGE]
    before = [f"{flaw.file} at {flaw.offset}: {flaw.text}" for flaw in mendable]
    damage = recovered.damage
    return Repair(
        cut_from=0 if damage is None else damage.index,
        cut_to=0 if damage is None else damage.known_index,
        aside=aside,
        pages=len(report.damaged_pages),
        pages_aside=pages_aside,
        mended=tuple(flaw for flaw in before if flaw not in left),
        left=tuple(sorted(left)),
    )


def _forget_pages(store: Path, show: Show) -> str:
    """Returns the file that keeps them."""
    offline_scan = OfflineScan(deep=True)
    offline_scan.open()
    _carry_out(offline_scan, store, show)
    kept: list[str] = []
    offline_scan.forget_pages(without_pages, kept.append)
    _carry_out(offline_scan, store, show)
    if not kept:
        raise StoreFault(offline_scan.report().fault)
    return kept[0]


class _Workshop:
    """A journal without a broker."""

    def __init__(self, store: Path, report: StoreReport, settings: JournalSettings, show: Show) -> None:
        self._journal = Journal(
            settings,
            node_name=NodeName(report.node_name),
            cluster_id=ClusterId(report.cluster_id),
            new_cluster_id=ClusterId(report.cluster_id),
        )
        self._disk = InlineDisk(store)
        self._show = show

    def open(self) -> Recovered:
        self._journal.open()
        return self._until(Recovered)

    def cut(self, first_index: LogIndex) -> str:
        self._journal.truncate(first_index, keep_aside=True)
        aside = self._until(Truncated).aside or ""
        # In a cluster other brokers may rely on the entries that were cut off.
        self._journal.store_identity.doubt()
        self._until(HardStateSaved)
        return aside

    def close(self) -> None:
        self._journal.close()
        self._until(Closed)
        self._disk.close()

    def _until(self, kind: type[E]) -> E:
        while True:
            for event in self._journal.take_events():
                if isinstance(event, kind):
                    return event
                if isinstance(event, RecoveryProgress):
                    self._show(event)
            self._disk.submit(self._journal.take_requests())
            for completion in self._disk.take_completions():
                self._journal.completed(completion)
