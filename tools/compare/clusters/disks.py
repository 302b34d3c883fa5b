"""Disks for brokers: a directory, or a small file system that can be made to stall, which needs root."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tools.compare.clusters import limits


class Disk:
    """An ordinary directory."""

    can_stall = False

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.logs = directory.with_suffix(".logs")
        """For a broker's own logs: on another disk, so that a stalled disk does not block its log."""
        self.stalls = False
        for needed in (directory, self.logs):
            needed.mkdir(parents=True, exist_ok=True)

    def stall(self) -> None:
        raise NotImplementedError("this disk cannot be stalled on purpose")

    def resume(self) -> None:
        """The disk works again."""

    def wipe(self) -> None:
        for path in self.directory.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


class LoopDisk(Disk):
    """A file system in a file. While it stalls, writers wait, without an error and without an end."""

    can_stall = True

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._image = directory.with_suffix(".img")

    def mount(self) -> None:
        with self._image.open("wb") as image:
            image.truncate(limits.DISK_MIB * 2**20)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
        _run("mount", "-o", "loop", str(self._image), str(self.directory))

    def unmount(self) -> None:
        self.resume()
        _run("umount", "--lazy", str(self.directory))
        self._image.unlink()

    def stall(self) -> None:
        self.stalls = True
        _run("fsfreeze", "--freeze", str(self.directory))

    def resume(self) -> None:
        if self.stalls:
            _run("fsfreeze", "--unfreeze", str(self.directory))
            self.stalls = False


def loop_disks_allowed() -> bool:
    return os.geteuid() == 0 and Path("/dev/loop-control").exists()


@contextmanager
def disks(directory: Path, count: int, *, stalling: bool) -> Iterator[list[Disk]]:
    with ExitStack() as stack:
        found: list[Disk] = []
        for number in range(1, count + 1):
            if not stalling:
                found.append(Disk(directory / f"n{number}"))
                continue
            disk = LoopDisk(directory / f"n{number}")
            disk.mount()
            stack.callback(_unmount, disk)
            found.append(disk)
        yield found


def _unmount(disk: LoopDisk) -> None:
    with contextlib.suppress(RuntimeError):
        disk.unmount()


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=limits.COMMAND_TIMEOUT_S)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
