"""Carries out one effect at a time on the files of a real directory. Raises OSError if that fails.

Not shared between threads: each thread has its own instance, with its own open files.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, assert_never

from pandomq.journal.effects import (
    Create,
    Delete,
    Effect,
    FileInfo,
    FileName,
    ListFiles,
    MeasureSpace,
    Read,
    Rename,
    Resize,
    Result,
    SyncDirectory,
    SyncFile,
    Write,
)

OPEN_FILES_MAX: Final = 64
CHUNKS_PER_WRITE_MAX: Final = 1024
"""The system's maximum for one call (IOV_MAX)."""
READ_BYTES_MAX: Final = 2**30
FALLOC_KEEP_SIZE: Final = 1

_libc = ctypes.CDLL(None, use_errno=True)


class DirectoryFiles:
    def __init__(self, directory: Path, *, drops_cache: bool = False) -> None:
        self._directory = directory
        self._directory_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._fds: OrderedDict[FileName, int] = OrderedDict()
        self._drops_cache = drops_cache
        """After a sync: later reads come from the disk, and large files do not push others out of memory."""

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()
        os.close(self._directory_fd)

    def forget(self, file: FileName) -> None:
        """The file was deleted or renamed: an open file would keep its disk space."""
        fd = self._fds.pop(file, None)
        if fd is not None:
            close_unneeded(fd)

    def duplicate(self, file: FileName) -> int:
        """Another descriptor of the open file, for another thread, which closes it."""
        return os.dup(self._fd(file))

    def perform(self, effect: Effect) -> Result:
        match effect:
            case Create(file, reserve_bytes):
                self._create(file, reserve_bytes)
            case Write(file, offset, chunks):
                write_all(self._fd(file), offset, chunks)
            case SyncFile(file):
                self.sync(file)
            case SyncDirectory():
                os.fsync(self._directory_fd)
            case Read(file, offset, length):
                return self._read(file, offset, length)
            case Resize(file, size_bytes):
                os.ftruncate(self._fd(file), size_bytes)
            case Rename(file, new):
                self.forget(file)
                self.forget(new)
                os.rename(file, new, src_dir_fd=self._directory_fd, dst_dir_fd=self._directory_fd)
            case Delete(file):
                self.forget(file)
                os.unlink(file, dir_fd=self._directory_fd)
            case ListFiles():
                return tuple(sorted(self._list()))
            case MeasureSpace():
                space = os.fstatvfs(self._directory_fd)
                return space.f_bavail * space.f_frsize
            case _:
                assert_never(effect)
        return None

    def _list(self) -> Iterator[FileInfo]:
        with os.scandir(self._directory) as found:
            for entry in found:
                # Another lane may delete a file while this one looks.
                with suppress(FileNotFoundError):
                    if entry.is_file():
                        yield FileInfo(FileName(entry.name), entry.stat().st_size)

    def sync(self, file: FileName) -> None:
        fd = self._fd(file)
        os.fdatasync(fd)
        if self._drops_cache:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def _create(self, file: FileName, reserve_bytes: int) -> None:
        fd = os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=self._directory_fd)
        try:
            if reserve_bytes:
                _reserve(fd, reserve_bytes)
        except OSError:
            os.close(fd)
            os.unlink(file, dir_fd=self._directory_fd)
            raise
        self._keep(file, fd)

    def _read(self, file: FileName, offset: int, length: int) -> bytes:
        fd = self._fd(file)
        data = os.pread(fd, min(length, READ_BYTES_MAX), offset)
        if len(data) == length or not data:
            return data
        chunks = [data]
        done = len(data)
        while done < length:
            data = os.pread(fd, min(length - done, READ_BYTES_MAX), offset + done)
            if not data:
                break
            chunks.append(data)
            done += len(data)
        return b"".join(chunks)

    def _fd(self, file: FileName) -> int:
        fd = self._fds.get(file)
        if fd is None:
            try:
                fd = os.open(file, os.O_RDWR | os.O_CLOEXEC, dir_fd=self._directory_fd)
            except OSError as error:
                if error.errno not in (errno.EROFS, errno.EACCES):
                    raise
                # A file without write permission may still be read, for tools.
                fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._directory_fd)
            self._keep(file, fd)
        else:
            self._fds.move_to_end(file)
        return fd

    def _keep(self, file: FileName, fd: int) -> None:
        self._fds[file] = fd
        if len(self._fds) > OPEN_FILES_MAX:
            _, oldest = self._fds.popitem(last=False)
            os.close(oldest)


def close_unneeded(fd: int) -> None:
    """Some file systems report an error here, and have closed the file. Only a sync decides what is on disk."""
    with suppress(OSError):
        os.close(fd)


def write_all(fd: int, offset: int, chunks: tuple[bytes, ...] | list[bytes]) -> None:
    for start in range(0, len(chunks), CHUNKS_PER_WRITE_MAX):
        views = [memoryview(chunk) for chunk in chunks[start : start + CHUNKS_PER_WRITE_MAX]]
        while views:
            written = os.pwritev(fd, views, offset)
            offset += written
            # A write may stop early, for instance at two gigabytes.
            while views and written >= len(views[0]):
                written -= len(views.pop(0))
            if views and written:
                views[0] = views[0][written:]


def _reserve(fd: int, size_bytes: int) -> None:
    """Reserves space without changing the size. On a file system without support for that, a full disk shows later."""
    result = _libc.fallocate(fd, FALLOC_KEEP_SIZE, ctypes.c_longlong(0), ctypes.c_longlong(size_bytes))
    if result != 0:
        number = ctypes.get_errno()
        if number not in (errno.EOPNOTSUPP, errno.ENOSYS):
            raise OSError(number, os.strerror(number))
