"""The share of the machine that other programs use during a measurement.

This process and all its descendants are not counted. A killed broker leaves children behind; the system's first process
would adopt them, and they would count as other programs, so this process adopts them itself. The kernel's own threads
and interrupts serve the running programs, and count for none.
"""

import ctypes
import os
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PR_SET_CHILD_SUBREAPER: Final = 36
_KERNEL_THREAD: Final = 0x00200000
"""A flag of the kernel: PF_KTHREAD."""
_STOLEN_AT: Final = 7
"""A field in the first line of /proc/stat: time that a hypervisor gave to other machines."""
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class Worker(NamedTuple):
    """A process in /proc."""

    pid: int
    parent: int
    is_kernel: bool
    ticks: int
    """Processor time; includes that of its children that have ended and were waited for."""


class OtherWork:
    """Measures from its creation until `share` is called."""

    def __init__(self) -> None:
        take_in_orphans()
        self._begun_s = time.monotonic()
        self._ticks = _ticks_of_others()

    def share(self) -> float:
        used_s = (_ticks_of_others() - self._ticks) / _TICKS_PER_S
        # The system counts in ticks, which are coarse beside a short measurement.
        return min(max(used_s, 0.0) / ((time.monotonic() - self._begun_s) * (os.cpu_count() or 1)), 1.0)


def take_in_orphans() -> None:
    """A descendant whose parent ends becomes a child of this process."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "orphans cannot be taken in")


def ticks_of_others(workers: Iterable[Worker], own_pid: int) -> int:
    """A process that ends passes its ticks to the process that waits for it, so the sum over all keeps them."""
    known = {worker.pid: worker for worker in workers}
    ours = {own_pid}
    for pid in known:
        line = []
        while pid in known and pid not in ours and pid not in line:
            line.append(pid)
            pid = known[pid].parent
        if pid in ours:
            ours.update(line)
    return sum(worker.ticks for pid, worker in known.items() if pid not in ours and not worker.is_kernel)


def _ticks_of_others() -> int:
    stolen = int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:][_STOLEN_AT])
    return ticks_of_others(_workers(), os.getpid()) + stolen


def _workers() -> Iterable[Worker]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            # The ticks of one that ended in the meantime are in its parent.
            with suppress(OSError):
                yield _worker(int(entry.name), (entry / "stat").read_text())


def _worker(pid: int, stat: str) -> Worker:
    # The command name may contain spaces, so fields are counted from its closing parenthesis.
    fields = stat.rpartition(")")[2].split()
    parent, flags, ticks = int(fields[1]), int(fields[6]), sum(map(int, fields[11:15]))
    return Worker(pid, parent, bool(flags & _KERNEL_THREAD), ticks)
