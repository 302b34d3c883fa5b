"""The file `pid` in a broker's directory: the number of the process that runs there.

A process holds a lock on the file for as long as it runs, and removes the file when it ends. A second process that is
started on the same directory finds the lock taken and leaves the file as it is.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PID: Final = "pid"


@contextmanager
def pid_file(directory: Path) -> Iterator[bool]:
    """Writes this process's number, and removes the file at the end; neither, and False, if another process holds
    it."""
    path = directory / PID
    fd = _locked(path)
    if fd is None:
        yield False
        return
    try:
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        yield True
    finally:
        path.unlink(missing_ok=True)
        os.close(fd)


def _locked(path: Path) -> int | None:
    """Opens and locks the file; returns None if another process holds the lock."""
    while True:
        fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        # The last owner may have removed the file after it was opened here.
        if os.fstat(fd).st_nlink:
            return fd
        os.close(fd)
