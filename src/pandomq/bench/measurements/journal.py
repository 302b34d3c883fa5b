"""Measures a journal on a real directory: appending, recovery, snapshots. Creates its own store, and removes it."""

from __future__ import annotations

import os
import select
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from pandomq.ids import ClusterId, LogIndex, NodeName, Term
from pandomq.journal.events import Closed, Durable, Event, Recovered, Replayed, SnapshotSaved
from pandomq.journal.journal import Journal
from pandomq.journal.limits import JournalSettings
from pandomq.runtime.disk.disk import Disk

CLUSTER = ClusterId("00000000-0000-4000-8000-000000000000")
PATIENCE_MS = 120_000


class JournalMeasurement(msgspec.Struct, frozen=True):
    entry_bytes: int
    entries_per_batch: int
    batches: int
    disk_mb_s: float
    """The rate of the disk when the same batches are written and synced without a journal, one after the other: the
    limit."""
    append_mb_s: float
    """Batches one after the other, each submitted while the one before is being synced."""
    append_us: float
    """Processor time of the calling thread, for one batch."""
    sync_ms_p50: float
    """From submitting a batch to its completion, with nothing else under way."""
    sync_ms_p99: float
    recovered_bytes: int
    recovery_s: float
    recovery_cpu_s: float
    snapshot_bytes: int
    snapshot_s: float
    """Written, synced, read back and checked."""
    snapshot_caller_ms: float
    """Processor time of the calling thread."""


class _Driver:
    """A journal and its disk; the calling thread waits where an event loop would."""

    def __init__(self, directory: Path, settings: JournalSettings) -> None:
        self.journal = Journal(settings, node_name=NodeName("bench"), new_cluster_id=CLUSTER)
        self._disk = Disk(directory)
        self._ready = select.poll()
        self._ready.register(self._disk.fd, select.POLLIN)
        self._events: list[Event] = []
        self.journal.open()

    def submit(self) -> None:
        self._disk.submit(self.journal.take_requests())

    def poll(self) -> list[Event]:
        for completion in self._disk.take_completions():
            self.journal.completed(completion)
        events = self.journal.take_events()
        self.submit()
        return events

    def until(self, done: Callable[[Event], bool]) -> None:
        while True:
            if any(done(event) for event in self.poll()):
                return
            self._ready.poll(PATIENCE_MS)

    def close(self) -> None:
        self.journal.close()
        self.submit()
        self.until(lambda event: isinstance(event, Closed))
        self._disk.close()


def measure_journal(
    directory: Path,
    show: Callable[[str], None],
    *,
    entry_bytes: int = 1024,
    entries_per_batch: int = 2000,
    total_bytes: int = 2**30,
    settings: JournalSettings | None = None,
) -> JournalMeasurement:
    store = directory / f"journal-bench-{os.getpid()}"
    settings = settings or JournalSettings()
    batches = max(1, total_bytes // (entry_bytes * entries_per_batch))
    payloads = [os.urandom(entry_bytes) for _ in range(entries_per_batch)]
    try:
        driver = _Driver(store, settings)
        driver.until(lambda event: isinstance(event, Recovered))
        show("syncs")
        latencies_ms = _measure_syncs(driver, payloads[0])
        show("the disk alone")
        disk_s = _measure_disk(store / "alone", b"".join(payloads), batches)
        show("appending")
        append_us, append_s = _measure_appends(driver, payloads, batches)
        show("snapshot")
        snapshot_bytes, snapshot_s, caller_s = _measure_snapshot(driver)
        show("more to recover")
        _measure_appends(driver, payloads, batches)
        driver.close()
        show("recovery")
        recovered_bytes, recovery_s, recovery_cpu_s = _measure_recovery(store, settings)
    finally:
        shutil.rmtree(store, ignore_errors=True)
    return JournalMeasurement(
        entry_bytes=entry_bytes,
        entries_per_batch=entries_per_batch,
        batches=batches,
        disk_mb_s=round(batches * entries_per_batch * entry_bytes / disk_s / 1e6, 1),
        append_mb_s=round(batches * entries_per_batch * entry_bytes / append_s / 1e6, 1),
        append_us=round(append_us, 1),
        sync_ms_p50=round(latencies_ms[len(latencies_ms) // 2], 3),
        sync_ms_p99=round(latencies_ms[len(latencies_ms) * 99 // 100], 3),
        recovered_bytes=recovered_bytes,
        recovery_s=round(recovery_s, 3),
        recovery_cpu_s=round(recovery_cpu_s, 3),
        snapshot_bytes=snapshot_bytes,
        snapshot_s=round(snapshot_s, 3),
        snapshot_caller_ms=round(caller_s * 1000, 3),
    )


def _measure_syncs(driver: _Driver, payload: bytes, count: int = 300) -> list[float]:
    latencies_ms = []
    for _ in range(count):
        start = time.perf_counter()
        index = driver.journal.append(Term(1), payload)
        driver.journal.sync()
        driver.submit()
        while driver.journal.durable_index < index:
            driver.until(lambda event: isinstance(event, Durable))
        latencies_ms.append((time.perf_counter() - start) * 1000)
    return sorted(latencies_ms)


def _measure_disk(file: Path, data: bytes, batches: int) -> float:
    """Seconds."""
    with file.open("wb", buffering=0) as written:
        start = time.perf_counter()
        for _ in range(batches):
            written.write(data)
            os.fdatasync(written.fileno())
        seconds = time.perf_counter() - start
    file.unlink()
    return seconds


def _measure_appends(driver: _Driver, payloads: list[bytes], batches: int) -> tuple[float, float]:
    """Microseconds of this thread for a batch, and seconds for all of them."""
    journal = driver.journal
    start = time.perf_counter()
    busy_s = 0.0
    for _ in range(batches):
        called = time.thread_time()
        journal.extend(Term(1), payloads)
        journal.sync()
        driver.submit()
        busy_s += time.thread_time() - called
        # One batch ahead of the disk, like a busy broker.
        while journal.durable_index < journal.last_index - len(payloads):
            driver.until(lambda event: isinstance(event, Durable))
    while journal.durable_index < journal.last_index:
        driver.until(lambda event: isinstance(event, Durable))
    return busy_s / batches * 1e6, time.perf_counter() - start


def _measure_snapshot(driver: _Driver, size_bytes: int = 64 * 2**20) -> tuple[int, float, float]:
    journal = driver.journal
    journal.commit(LogIndex(journal.last_index))
    piece = os.urandom(256 * 1024)
    start = time.perf_counter()
    busy_s = 0.0
    writer = journal.begin_snapshot(journal.last_index)
    for _ in range(size_bytes // len(piece)):
        called = time.thread_time()
        writer.add(1, piece)
        driver.submit()
        busy_s += time.thread_time() - called
        while writer.pending_bytes > 4 * len(piece):
            time.sleep(0.0002)
            called = time.thread_time()
            driver.poll()
            busy_s += time.thread_time() - called
    writer.finish()
    driver.submit()
    driver.until(lambda event: isinstance(event, SnapshotSaved))
    return size_bytes, time.perf_counter() - start, busy_s


def _measure_recovery(store: Path, settings: JournalSettings) -> tuple[int, float, float]:
    size_bytes = 0

    def done(event: Event) -> bool:
        nonlocal size_bytes
        if isinstance(event, Replayed):
            size_bytes += sum(len(entry.payload) for entry in event.entries)
        return isinstance(event, Recovered)

    start, cpu_start = time.perf_counter(), time.process_time()
    driver = _Driver(store, settings)
    driver.until(done)
    seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - cpu_start
    driver.journal.replayed()
    driver.close()
    return size_bytes, seconds, cpu_seconds
