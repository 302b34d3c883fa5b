"""The operating system's data about this process; zeros where there is none."""

from __future__ import annotations

import os
import resource
from pathlib import Path
from typing import Final

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")


def resident_bytes() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


def open_files() -> int:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def open_files_max() -> int:
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def processor_seconds() -> float:
    times = os.times()
    return times.user + times.system
