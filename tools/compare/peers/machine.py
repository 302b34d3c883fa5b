"""A description of the machine of the figures, without its name."""

import os
import platform
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
