"""Disks that fail: one that fills up, one that stalls; and stores that are wiped or have a byte changed.

A small tmpfs fills up. A file system in a file, mounted through a loop device, is frozen by FIFREEZE: every write and
sync on it hangs until it is thawed, while the broker itself and its network go on. Both need root.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from random import Random

from .network import command

FIFREEZE, FITHAW = 0xC0045877, 0xC0045878
STALLING_DISK_BYTES = 256 * 1024 * 1024


@cache
def missing() -> str | None:
    """Returns why no separate disk can be mounted here."""
    if os.geteuid() != 0:
        return "mounting needs root"
    absent = [name for name in ("mount", "umount", "mkfs.ext4") if shutil.which(name) is None]
    return f"{', '.join(absent)} is missing" if absent else None


class SmallDisk:
    """A tmpfs of a few megabytes. `fill` uses all of its space, `empty` frees it."""

    def __init__(self, place: Path, size_bytes: int) -> None:
        self._place = place
        self._size_bytes = size_bytes
        self._ballast = place / "ballast"

    def mount(self) -> None:
        self._place.mkdir(parents=True)
        command("mount", "-t", "tmpfs", "-o", f"size={self._size_bytes}", "tmpfs", str(self._place))

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self._place)], capture_output=True, check=False)

    def fill(self) -> None:
        with self._ballast.open("wb") as ballast, contextlib.suppress(OSError):
            while True:
                os.write(ballast.fileno(), bytes(65536))

    def empty(self) -> None:
        self._ballast.unlink()


class StallingDisk:
    """An ext4 in a file."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._image = place.with_suffix(".img")
        self._frozen: int | None = None

    def mount(self) -> None:
        self._place.mkdir(parents=True)
        with self._image.open("wb") as image:
            image.truncate(STALLING_DISK_BYTES)
        command("mkfs.ext4", "-q", "-F", str(self._image))
        command("mount", "-o", "loop", str(self._image), str(self._place))

    def unmount(self) -> None:
        """Thaws it first: a process that waits for a frozen disk cannot be killed."""
        self.thaw()
        subprocess.run(["umount", "--lazy", str(self._place)], capture_output=True, check=False)
        self._image.unlink(missing_ok=True)

    def freeze(self) -> None:
        self._frozen = os.open(self._place, os.O_RDONLY)
        fcntl.ioctl(self._frozen, FIFREEZE, 0)

    def thaw(self) -> None:
        if self._frozen is not None:
            fcntl.ioctl(self._frozen, FITHAW, 0)
            os.close(self._frozen)
            self._frozen = None


def wipe(data: Path) -> None:
    """Deletes everything but the directory, as after the disk was replaced."""
    for path in data.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def corrupt(data: Path, chance: Random) -> str:
    """Changes one bit in the middle of a segment that has entries; returns the place."""
    segments = [path for path in sorted(data.rglob("segment-*.log")) if path.stat().st_size]
    assert segments, f"no segments in {data}: {sorted(data.rglob('*'))}"
    path = chance.choice(segments)
    content = bytearray(path.read_bytes())
    used = len(content.rstrip(b"\0"))
    # Not near the end: there a changed bit looks like a write that was cut short.
    place = chance.randrange(used // 4, max(used // 4 + 1, used * 3 // 4))
    content[place] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return f"{path.name} at {place} of {used}"
