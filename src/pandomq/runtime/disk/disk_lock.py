"""One process at a time may use a store."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

from pandomq.journal.effects import DiskError
from pandomq.journal.faults import disk_fault, in_use
from pandomq.journal.names import LOCK


class DirectoryLock:
    """The lock is held from here until `release`, or until the process ends in any way."""

    def __init__(self, directory: Path) -> None:
        """Creates the directory if there is none. Raises InUseFault or DiskFault, with a message for the user."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._fd = os.open(directory / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise disk_fault(_described(error), "open the store in", None) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = _name(self._fd)
            os.close(self._fd)
            if error.errno in (errno.EAGAIN, errno.EACCES):
                raise in_use(str(directory), holder) from error
            raise disk_fault(_described(error), "lock the store in", None) from error
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, b"%d\n" % os.getpid(), 0)

    def release(self) -> None:
        os.close(self._fd)


def lock_holder(directory: Path) -> str | None:
    """Which process uses the store, if any; changes nothing."""
    try:
        fd = os.open(directory / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _name(fd)
    finally:
        os.close(fd)
    return None


def _name(fd: int) -> str:
    pid = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
    return f"process {pid}" if pid else "another process"


def _described(error: OSError) -> DiskError:
    return DiskError(error.errno or errno.EIO, f"{error.filename}: {error.strerror}")
