"""Files that record which part of their content would survive a crash, and which part might.

Synced data is safe. A crash keeps or loses each later change on its own: every sector of a file has the content of the
last sync or of any later write; the size is the synced one or any later one; each change of the directory happened or
did not. A good file system loses less than that, but promises no more. A sync that fails leaves parts of the data clean
in memory and old on the disk: later syncs skip them, and a process that reads the file after this process has ended may
find the old data.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from random import Random

from pandomq.journal.effects import FileInfo, FileName

SECTOR_BYTES = 512


class Loss(enum.Enum):
    """How a crash treats what was not synced."""

    ALL = "all"
    """All unsynced data is lost."""
    NONE = "none"
    """All unsynced data survives, as when only the process was killed."""
    SOME = "some"
    """Each part of the unsynced data survives or does not."""


class SimFile:
    __slots__ = ("_changes", "_dropped", "_noted", "_sizes", "_synced", "_versions", "content", "reserved_bytes")

    def __init__(self, reserved_bytes: int = 0) -> None:
        self.content = bytearray()
        self.reserved_bytes = reserved_bytes
        self._synced = b""
        self._noted: bytes = b""
        self._changes: list[tuple[int, bytes | None]] = []
        """The content at an earlier time, and what has changed it since: writes at an offset, and new sizes."""
        self._versions: dict[int, list[bytes]] = {}
        """All contents that each sector has had since the last sync, up to that earlier time. Most syncs succeed, so
        the versions of later changes are determined only when they are needed."""
        self._sizes = [0]
        self._dropped: dict[int, bytes] = {}
        """Sectors that a failed sync did not write, with the content that is on the disk instead."""

    @property
    def used_bytes(self) -> int:
        return max(len(self.content), self.reserved_bytes)

    def write(self, offset: int, data: bytes) -> None:
        if not data:
            return
        end = offset + len(data)
        if end > len(self.content):
            self._sizes.append(end)
        _put(self.content, offset, data)
        self._changes.append((offset, data))

    def resize(self, size_bytes: int) -> None:
        self.reserved_bytes = 0
        _cut(self.content, size_bytes)
        self._sizes.append(size_bytes)
        self._changes.append((size_bytes, None))

    def sync(self) -> None:
        if self._dropped:
            self._note_changes()
        self._noted = self._synced = bytes(self.content)
        self._changes.clear()
        self._versions.clear()
        self._sizes = [len(self.content)]

    def fail_sync(self, random: Random) -> None:
        self._note_changes()
        for sector in list(self._versions):
            if random.random() < 0.5:
                del self._versions[sector]
                at = sector * SECTOR_BYTES
                self._dropped[sector] = self._synced[at : at + SECTOR_BYTES].ljust(SECTOR_BYTES, b"\0")

    def crash(self, random: Random, loss: Loss) -> None:
        """Applies a crash. After a loss of power everything that is left is safe. After a kill the operating system
        still has the written data, and may lose it at the next loss of power; until then only a sync makes it safe."""
        self._note_changes()
        if loss is Loss.ALL:
            self.content = bytearray(self._synced)
        elif loss is Loss.SOME:
            self.content = self._lottery(random)
        for sector, old in self._dropped.items():
            at = sector * SECTOR_BYTES
            self.content[at : at + SECTOR_BYTES] = old[: max(0, len(self.content) - at)]
        self._dropped.clear()
        self._noted = bytes(self.content)
        if loss is not Loss.NONE:
            self.sync()

    def _lottery(self, random: Random) -> bytearray:
        size_bytes = random.choice(self._sizes)
        content = bytearray(self._synced[:size_bytes].ljust(size_bytes, b"\0"))
        # Disks differ in how much they lose, so the share is drawn.
        kept_share = random.choice((0.1, 0.5, 0.9))
        for sector, versions in self._versions.items():
            if random.random() < kept_share:
                at = sector * SECTOR_BYTES
                version = random.choice(versions) if random.random() < 0.5 else versions[-1]
                content[at : at + SECTOR_BYTES] = version[: max(0, size_bytes - at)]
        return content

    def flip(self, bit: int) -> None:
        """Flips a bit on the disk, whatever was synced."""
        at, mask = bit // 8, 1 << bit % 8
        self.content[at] ^= mask
        self.sync()

    def _note_changes(self) -> None:
        content = bytearray(self._noted)
        for at, data in self._changes:
            if data is not None:
                _put(content, at, data)
                self._note(content, at, at + len(data))
            else:
                size_before = len(content)
                _cut(content, at)
                # The rest of the last sector is zeros when the file grows again.
                self._note(content, at, size_before)
        self._changes.clear()
        self._noted = bytes(self.content)

    def _note(self, content: bytearray, start: int, end: int) -> None:
        for sector in range(start // SECTOR_BYTES, -(-end // SECTOR_BYTES)) if start < end else ():
            at = sector * SECTOR_BYTES
            version = bytes(content[at : at + SECTOR_BYTES]).ljust(SECTOR_BYTES, b"\0")
            self._versions.setdefault(sector, []).append(version)
            self._dropped.pop(sector, None)


def _put(content: bytearray, offset: int, data: bytes) -> None:
    end = offset + len(data)
    if end > len(content):
        content.extend(bytes(end - len(content)))
    content[offset:end] = data


def _cut(content: bytearray, size_bytes: int) -> None:
    """Gives the content this size; it may also grow."""
    if size_bytes < len(content):
        del content[size_bytes:]
    else:
        content.extend(bytes(size_bytes - len(content)))


class SimDirectory:
    __slots__ = ("_changes", "_synced", "files")

    def __init__(self, contents: Mapping[FileName, bytes] | None = None) -> None:
        self.files: dict[FileName, SimFile] = {}
        self._synced: dict[FileName, SimFile] = {}
        self._changes: list[tuple[FileName | None, FileName, SimFile]] = []
        """Changes as (old name, new name, file). Without an old name the file is new; without a new name it was
        removed."""
        for name, content in (contents or {}).items():
            file = self.files[name] = SimFile()
            file.write(0, content)
            file.sync()
        self.sync()

    @property
    def used_bytes(self) -> int:
        return sum(file.used_bytes for file in self.files.values())

    def create(self, name: FileName, reserved_bytes: int) -> None:
        file = self.files[name] = SimFile(reserved_bytes)
        self._changes.append((None, name, file))

    def rename(self, name: FileName, new: FileName) -> None:
        file = self.files.pop(name)
        self.files[new] = file
        self._changes.append((name, new, file))

    def delete(self, name: FileName) -> None:
        file = self.files.pop(name)
        self._changes.append((name, FileName(""), file))

    def list(self) -> tuple[FileInfo, ...]:
        return tuple(FileInfo(name, len(file.content)) for name, file in sorted(self.files.items()))

    def sync(self) -> None:
        self._synced = dict(self.files)
        self._changes.clear()

    def crash(self, random: Random, loss: Loss) -> None:
        if loss is not Loss.NONE:
            files = dict(self._synced)
            for old, new, file in self._changes:
                if loss is Loss.ALL or random.random() < 0.5:
                    continue
                if old is not None:
                    files.pop(old, None)
                if new:
                    files[new] = file
            self.files = files
        for _, file in sorted(self.files.items()):
            file.crash(random, loss)
        if loss is not Loss.NONE:
            self.sync()
