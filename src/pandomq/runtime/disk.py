"""A directory as the journal's disk: one thread a lane carries out what is asked, in order.

What gathers while a lane is busy is taken together, and of several syncs of one file with nothing but writes to it in
between only the last is done: it completes them all. A directory has one user at a time, by a lock that ends with the
process, however that ends.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from queue import SimpleQueue
from typing import Final, assert_never

from pandomq.journal.effects import (
    Completion,
    Create,
    Delete,
    DiskError,
    Effect,
    FileInfo,
    FileName,
    Lane,
    ListFiles,
    MeasureSpace,
    Read,
    Rename,
    Request,
    Resize,
    Result,
    SyncDirectory,
    SyncFile,
    Write,
)
from pandomq.journal.faults import in_use
from pandomq.journal.names import LOCK

OnCompleted = Callable[[list[Completion]], None]

_KEEP_SIZE: Final = 1
"""FALLOC_FL_KEEP_SIZE."""


class Disk:
    """`on_completed` is called in the threads of the lanes."""

    def __init__(self, directory: Path, on_completed: OnCompleted) -> None:
        """Raises InUseFault, or OSError."""
        self._directory = directory
        self._on_completed = on_completed
        self._lock = _lock(directory)
        self._directory_descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._files: dict[FileName, int] = {}
        self._files_lock = threading.Lock()
        self._queues: dict[Lane, SimpleQueue[Sequence[Request] | None]] = {lane: SimpleQueue() for lane in Lane}
        self._threads = [
            # A disk that hangs must not keep the process from ending.
            threading.Thread(target=self._serve, args=(lane,), name=f"disk-{lane.value}", daemon=True)
            for lane in Lane
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, requests: Sequence[Request]) -> None:
        for lane in {request.lane for request in requests}:
            self._queues[lane].put([request for request in requests if request.lane is lane])

    def close(self) -> None:
        """After everything was completed."""
        for queue in self._queues.values():
            queue.put(None)
        for thread in self._threads:
            thread.join()
        for descriptor in (*self._files.values(), self._directory_descriptor, self._lock):
            os.close(descriptor)

    # In the threads.

    def _serve(self, lane: Lane) -> None:
        queue = self._queues[lane]
        while True:
            gathered = queue.get()
            if gathered is None:
                return
            requests = list(gathered)
            while not queue.empty():
                more = queue.get()
                if more is None:
                    queue.put(None)
                    break
                requests += more
            self._on_completed(self._carry_out(requests))

    def _carry_out(self, requests: list[Request]) -> list[Completion]:
        completions: list[Completion] = []
        joined: list[Request] = []
        for place, request in enumerate(requests):
            if _joins_a_later(requests, place):
                joined.append(request)
                continue
            result: Result = None
            error: DiskError | None = None
            try:
                result = self._perform(request.effect)
            except OSError as failure:
                error = DiskError(failure.errno or 0, failure.strerror or str(failure))
            if isinstance(request.effect, SyncFile):
                completions += [Completion(one.ticket, None, error) for one in joined]
                joined.clear()
            completions.append(Completion(request.ticket, result, error))
        return completions

    def _perform(self, effect: Effect) -> Result:
        match effect:
            case Create(file, reserve_bytes):
                self._create(file, reserve_bytes)
            case Write(file, offset, chunks):
                _write(self._descriptor(file), offset, chunks)
            case SyncFile(file):
                os.fdatasync(self._descriptor(file))
            case SyncDirectory():
                os.fsync(self._directory_descriptor)
            case Read(file, offset, length):
                return _read(self._descriptor(file), offset, length)
            case Resize(file, size_bytes):
                os.ftruncate(self._descriptor(file), size_bytes)
            case Rename(file, new):
                self._forget(new)
                os.rename(self._directory / file, self._directory / new)
                self._forget(file)
            case Delete(file):
                os.unlink(self._directory / file)
                self._forget(file)
            case ListFiles():
                with os.scandir(self._directory) as entries:
                    return tuple(FileInfo(FileName(one.name), one.stat().st_size) for one in entries if one.is_file())
            case MeasureSpace():
                space = os.fstatvfs(self._directory_descriptor)
                return space.f_bavail * space.f_frsize
            case _:
                assert_never(effect)
        return None

    def _create(self, file: FileName, reserve_bytes: int) -> None:
        descriptor = os.open(self._directory / file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        if reserve_bytes:
            try:
                _reserve(descriptor, reserve_bytes)
            except OSError:
                os.close(descriptor)
                os.unlink(self._directory / file)
                raise
        with self._files_lock:
            self._files[file] = descriptor

    def _descriptor(self, file: FileName) -> int:
        with self._files_lock:
            descriptor = self._files.get(file)
            if descriptor is None:
                descriptor = self._files[file] = os.open(self._directory / file, os.O_RDWR)
            return descriptor

    def _forget(self, file: FileName) -> None:
        with self._files_lock:
            descriptor = self._files.pop(file, None)
        if descriptor is not None:
            os.close(descriptor)


def _joins_a_later(requests: list[Request], place: int) -> bool:
    """Whether this is a sync that a later one of the same file does as well."""
    effect = requests[place].effect
    if not isinstance(effect, SyncFile):
        return False
    for later in requests[place + 1 :]:
        if not isinstance(later.effect, Write | SyncFile) or later.effect.file != effect.file:
            return False
        if isinstance(later.effect, SyncFile):
            return True
    return False


def _write(descriptor: int, offset: int, chunks: tuple[bytes, ...]) -> None:
    data = memoryview(chunks[0] if len(chunks) == 1 else b"".join(chunks))
    while data:
        written = os.pwrite(descriptor, data, offset)
        data, offset = data[written:], offset + written


def _read(descriptor: int, offset: int, length: int) -> bytes:
    parts: list[bytes] = []
    while length:
        part = os.pread(descriptor, length, offset)
        if not part:
            break
        parts.append(part)
        length, offset = length - len(part), offset + len(part)
    return b"".join(parts)


def _reserve(descriptor: int, size_bytes: int) -> None:
    """Sets space aside without changing the file's size, where the file system can."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate(descriptor, _KEEP_SIZE, ctypes.c_int64(0), ctypes.c_int64(size_bytes)):
        number = ctypes.get_errno()
        if number not in (95, 38):  # not supported, not implemented
            raise OSError(number, os.strerror(number))


def _lock(directory: Path) -> int:
    descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 32).decode(errors="replace").strip()
        os.close(descriptor)
        raise in_use(str(directory), f"process {holder}" if holder else "another process") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor
