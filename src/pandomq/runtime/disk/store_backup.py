"""Copies a store to another directory, also while a broker uses it; the copy is a store.

The broker is not paused. Files of a store only grow, apart from their first sectors, and a deleted file stays readable
while it is open. So all files are opened first; if none of them was deleted and the hard state did not change in the
meantime, they are the store at one moment. Their later content is what a crash could have left at that moment or later,
as long as the parts that are written last are read first: the newest segment before older ones, and of each its head,
then its table from the end on, then its body. Everything that was confirmed before is in the files by then.

A slot or sector that is read during a write may be half of each: the copy is read back and checked, and a damaged file
is copied again, together with those that still grew. Damage that remains is in the source.
"""

from __future__ import annotations

import errno
import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from pandomq.journal.effects import DiskError, FileName, Read
from pandomq.journal.events import RecoveryProgress, RecoveryStage
from pandomq.journal.faults import StoreFault, corrupt, disk_fault
from pandomq.journal.hard_state import COPY_OFFSETS, StoreState, decode_copy, encode_copy
from pandomq.journal.limits import PAGE_BYTES, SECTOR_BYTES, STATE_COPY_BYTES
from pandomq.journal.names import STATE, is_kept, page_file, page_number, segment_number, snapshot_index
from pandomq.journal.paging.page_file import PagePlace
from pandomq.journal.recovery.offline_scan import StoreReport
from pandomq.journal.segments.layout import HEAD_BYTES, IDENTITY_SECTOR, SEAL_SECTOR, body_offset, decode_identity
from pandomq.journal.segments.window import ReadWindow
from pandomq.journal.snapshots.snapshot import BadSnapshot, SnapshotBase, read_foundation
from pandomq.limits import MIB
from pandomq.runtime.disk.disk_files import write_all
from pandomq.runtime.disk.disk_tools import Show, inspect_store, store_in

CHUNK_BYTES: Final = MIB
MOMENT_TRIES_MAX: Final = 200
"""A moment between two changes is found at the first or second try, unless segments are tiny."""
MOMENT_REST_S: Final = 0.01
COPY_TRIES_MAX: Final = 5


def back_up(directory: Path, target: Path, show: Show) -> StoreReport:
    """Returns a report of the copy. Raises StoreFault if there is no store, no space, no empty target, or if the copy
    is damaged; a damaged copy is left for inspection."""
    source = store_in(directory)
    if not source.is_dir():
        raise StoreFault(f"{directory} is not a directory")
    _prepare(target)
    _allow_many_files()
    try:
        moment = _Moment(source)
        try:
            _check_space(target, moment)
            return _copy(moment, target, show)
        finally:
            moment.close()
    except OSError as error:
        file = FileName(Path(error.filename).name) if error.filename else None
        raise disk_fault(DiskError(error.errno or errno.EIO, str(error.strerror)), "back up", file) from error


class _Moment:
    """A store at one moment: its hard state, and its open files."""

    def __init__(self, source: Path) -> None:
        """Raises StoreFault or OSError."""
        if not (source / STATE).exists():
            raise StoreFault(f"directory '{source}' contains no store: give the data directory of a broker")
        self._source = source
        self.fds: dict[FileName, int] = {}
        for _ in range(MOMENT_TRIES_MAX):
            found = _read_state(source)
            if found is not None and self._open_all() and _read_state(source) == found:
                self.counter, self.state = found
                self._drop_unwanted_pages()
                return
            self.close()
            time.sleep(MOMENT_REST_S)
        if _read_state(source) is None:
            raise corrupt(STATE, 0, "both copies of the hard state are damaged")
        raise StoreFault(
            f"the files of {source} change faster than they can be copied; try again when the broker is less busy"
        )

    def _open_all(self) -> bool:
        """False if one of the files was deleted in the meantime."""
        names = _kept_files(self._source)
        try:
            for name in names:
                self.fds[name] = os.open(self._source / name, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        return names <= _kept_files(self._source)

    def _drop_unwanted_pages(self) -> None:
        """A restart does not need page files that no snapshot refers to."""
        snapshots = {file: fd for file, fd in self.fds.items() if snapshot_index(file) is not None}
        wanted = {page_file(place.number) for file, fd in snapshots.items() for place in _places(file, fd)}
        for file in [file for file in self.fds if page_number(file) is not None and file not in wanted]:
            os.close(self.fds.pop(file))

    @property
    def size_bytes(self) -> int:
        return sum(os.fstat(fd).st_size for fd in self.fds.values())

    def close(self) -> None:
        for fd in self.fds.values():
            os.close(fd)
        self.fds.clear()


def _kept_files(source: Path) -> set[FileName]:
    return {FileName(name) for name in os.listdir(source) if is_kept(name)}


def _read_state(source: Path) -> tuple[int, StoreState] | None:
    """The newer of its copies; None if no copy is complete. Raises VersionFault for a later version."""
    try:
        data = (source / STATE).read_bytes()
    except FileNotFoundError:
        return None
    copies = [decode_copy(data[offset : offset + STATE_COPY_BYTES]) for offset in COPY_OFFSETS]
    return max((copy for copy in copies if copy is not None), key=lambda copy: copy[0], default=None)


def _places(snapshot: FileName, fd: int) -> list[PagePlace]:
    """The pages that a snapshot refers to; none if it is damaged and thus unusable."""
    work = read_foundation(ReadWindow(snapshot, os.fstat(fd).st_size, CHUNK_BYTES))
    try:
        reads = next(work)
        while True:
            reads = work.send([os.pread(fd, read.length, read.offset) for read in reads if isinstance(read, Read)])
    except StopIteration as end:
        foundation: SnapshotBase = end.value
        return foundation.places
    except BadSnapshot:
        return []


# The target.


def _prepare(target: Path) -> None:
    try:
        target.mkdir(parents=True, exist_ok=True)
        occupied = any(target.iterdir())
    except OSError as error:
        raise disk_fault(DiskError(error.errno or errno.EIO, str(error.strerror)), f"use {target}", None) from error
    if occupied:
        raise StoreFault(f"{target} is not empty: choose an empty or new directory for the backup")


def _check_space(target: Path, moment: _Moment) -> None:
    space = os.statvfs(target)
    free_bytes = space.f_bavail * space.f_frsize
    if moment.size_bytes > free_bytes:
        text = f"a backup of {moment.size_bytes:,} bytes does not fit in {target}, which has {free_bytes:,} bytes free"
        raise StoreFault(text)


def _allow_many_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


# Copying.


def _copy(moment: _Moment, target: Path, show: Show) -> StoreReport:
    _copy_files(moment, set(moment.fds), target, show)
    # Last: an unfinished copy must not look like a store.
    _write_state(target, moment)
    report = inspect_store(target, show, deep=True)
    for _ in range(COPY_TRIES_MAX):
        damaged = _damaged(report) & moment.fds.keys()
        if not damaged:
            break
        _copy_files(moment, damaged | {file for file in moment.fds if _grows(target / file)}, target, show)
        report = inspect_store(target, show, deep=True)
    if not report.sound:
        raise _still_damaged(target, report)
    return report


def _copy_files(moment: _Moment, files: set[FileName], target: Path, show: Show) -> None:
    total_bytes = sum(os.fstat(moment.fds[file]).st_size for file in files)
    done_bytes = 0
    for file in sorted(files, reverse=True):
        for size_bytes in _copy_file(moment.fds[file], file, target):
            done_bytes += size_bytes
            show(RecoveryProgress(RecoveryStage.COPY, min(done_bytes, total_bytes), total_bytes))


def _grows(copy: Path) -> bool:
    """Whether the file was a segment without a seal when it was copied."""
    if segment_number(copy.name) is None:
        return False
    with copy.open("rb") as content:
        content.seek(SEAL_SECTOR * SECTOR_BYTES)
        return not any(content.read(SECTOR_BYTES))


def _copy_file(source: int, file: FileName, target: Path) -> Iterator[int]:
    """Yields the number of bytes copied so far."""
    copy = os.open(target / file, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        for start, end in _parts(source, file):
            while start < end and (data := os.pread(source, min(CHUNK_BYTES, end - start), start)):
                write_all(copy, start, [data])
                start += len(data)
                yield len(data)
        os.fsync(copy)
        # The later check must read from the disk.
        os.posix_fadvise(copy, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(copy)


def _parts(source: int, file: FileName) -> Iterator[tuple[int, int]]:
    """The ranges to read, in the order in which they must be read."""
    body = 0
    if segment_number(file) is not None:
        head = os.pread(source, HEAD_BYTES, 0)
        identity = decode_identity(head[IDENTITY_SECTOR * SECTOR_BYTES :][:SECTOR_BYTES])
        if identity is not None:
            yield 0, PAGE_BYTES
            body = body_offset(identity.slot_count)
            for page in range(body - PAGE_BYTES, 0, -PAGE_BYTES):
                yield page, page + PAGE_BYTES
    yield body, 2**63


def _write_state(target: Path, moment: _Moment) -> None:
    # In a cluster, the copy lacks what the broker sent after the copy was made.
    data = encode_copy(msgspec.structs.replace(moment.state, doubtful=True), moment.counter)
    fd = os.open(target / STATE, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        for offset in COPY_OFFSETS:
            write_all(fd, offset, [data])
        os.fsync(fd)
    finally:
        os.close(fd)
    directory = os.open(target, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def _damaged(report: StoreReport) -> set[FileName]:
    files = {flaw.file for flaw in report.flaws}
    return files if report.damage is None else {*files, report.damage.file}


def _still_damaged(target: Path, report: StoreReport) -> StoreFault:
    if report.fault:
        return StoreFault(f"the copy in {target} has the same fault as the original store: {report.fault}")
    where = report.damage if report.damage is not None else report.flaws[0]
    return StoreFault(
        (
            f"the copy in {target} has the same damage as the original store: {where.file} at offset {where.offset}: "
            f"{where.text}. Run `pandomq store repair` on the copy, which repairs it, or cuts the log there and "
            "keeps the cut part."
        ),
        where.file,
        where.offset,
    )
