"""The machine that figures come from, in words that do not name it."""

import os
import platform
import resource
import time
from pathlib import Path

import msgspec


class Machine(msgspec.Struct, frozen=True):
    cores: int
    processor: str
    memory_gib: float
    system: str
    python: str


def this_machine() -> Machine:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Machine(
        cores=len(os.sched_getaffinity(0)),
        processor=_processor(),
        memory_gib=round(pages / 2**30, 1),
        system=f"{platform.system()} {platform.release().split('-')[0]}",
        python=platform.python_version(),
    )


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


class OtherWork:
    """How much of the machine went to programs that are not ours, from its making until `share` is asked for.

    Our children count as ours once they have ended and were waited for.
    """

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._busy_s = _machine_busy_seconds()
        self._ours_s = _our_seconds()

    def share(self) -> float:
        others_s = _machine_busy_seconds() - self._busy_s - (_our_seconds() - self._ours_s)
        return max(others_s, 0.0) / ((time.monotonic() - self._begun) * (os.cpu_count() or 1))


def _machine_busy_seconds() -> float:
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _waiting, interrupts, soft_interrupts, stolen = map(int, fields[:8])
    ticks = user + nice + system + interrupts + soft_interrupts + stolen
    return ticks / os.sysconf("SC_CLK_TCK")


def _our_seconds() -> float:
    usages = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
