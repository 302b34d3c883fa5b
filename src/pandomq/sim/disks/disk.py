"""A disk in memory whose timing and failures follow from the seed.

It carries out a journal's requests, lane by lane, each after a delay; a stalled disk takes longer. At a crash, unsynced
data is lost, torn or reordered (see `files`), including requests that were still waiting. Syncs may be combined, as
a real disk does. Errors are injected by count: the next so many syncs fail, writes find the disk full or read-only,
bits flip, files are cut short or removed.
"""

from __future__ import annotations

import errno
import os
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from random import Random
from typing import Final, assert_never

import msgspec

from pandomq.journal.effects import (
    Completion,
    Create,
    Delete,
    DiskError,
    Effect,
    FileName,
    Lane,
    ListFiles,
    MeasureSpace,
    Read,
    Rename,
    Request,
    Resize,
    Result,
    SyncDirectory,
    SyncFile,
    Ticket,
    Write,
)
from pandomq.sim.disks.files import Loss, SimDirectory, SimFile
from pandomq.sim.draws import draw_between

NEVER_MS = 2**63
SYNCING: Final = frozenset((SyncFile, SyncDirectory, Create))
READING: Final = frozenset((Read, ListFiles, MeasureSpace))
"""SYNCING are the effects that take as long as a sync, READING those that take as long as a read; all others take as
long as a write."""
CHANGING: Final = frozenset((Create, Write, Resize, Rename, Delete))
"""The effects that fail on a read-only disk."""


class DiskPace(msgspec.Struct, frozen=True):
    """Durations in thousandths of a millisecond, each as a range."""

    read_us: tuple[int, int] = (50, 500)
    write_us: tuple[int, int] = (10, 200)
    sync_us: tuple[int, int] = (500, 4_000)
    stall_chance: float = 0.0
    """The chance that a request takes `stall_us` longer."""
    stall_us: tuple[int, int] = (100_000, 2_000_000)
    joined_chance: float = 0.3
    """The chance that a sync waits for a later one of the same file."""


class SimDisk:
    def __init__(self, random: Random, *, pace: DiskPace | None = None, capacity_bytes: int = 2**40) -> None:
        self._random = random
        self._pace = pace or DiskPace()
        self._directory = SimDirectory()
        self._damaged: SimFile | None = None
        self.was_damaged = False
        """Whether a bit has flipped or a file was cut at any time."""
        self._lanes: dict[Lane, deque[tuple[int, Request]]] = {lane: deque() for lane in Lane}
        self._busy_until_us: Counter[Lane] = Counter()
        self._joined: dict[Lane, list[Ticket]] = {lane: [] for lane in Lane}
        self._stalled_until_us: Counter[Lane] = Counter()
        self._failures: Counter[tuple[type[Effect], int]] = Counter()
        self.capacity_bytes = capacity_bytes
        self.read_only = False
        self.slowness = 1
        """The factor by which all durations except stalls are multiplied."""

    # The runtime's interface.

    def submit(self, requests: list[Request], now_ms: int) -> None:
        now_us = now_ms * 1000
        for request in requests:
            _, lane, effect = request
            due_us = max(now_us, self._busy_until_us[lane]) + self._duration_us(effect)
            self._busy_until_us[lane] = due_us
            self._lanes[lane].append((due_us, request))

    @property
    def next_ms(self) -> int:
        """Returns when a completion is available; NEVER_MS if no request is pending."""
        due = [lane[0][0] for lane in self._lanes.values() if lane]
        return -(-min(due) // 1000) if due else NEVER_MS

    @property
    def telling_ms(self) -> int:
        """Returns when a machine is told of completions. A write that is followed by another request is reported
        together with that request, as a disk reports several completions at a time."""
        first_us = None
        for lane in self._lanes.values():
            if lane:
                due_us = _worth_us(lane)
                first_us = due_us if first_us is None or due_us < first_us else first_us
        return NEVER_MS if first_us is None else -(-first_us // 1000)

    @property
    def idle_ms(self) -> int:
        """Returns when all requests will be done; 0 if none is pending."""
        return -(-max((lane[-1][0] for lane in self._lanes.values() if lane), default=0) // 1000)

    def take_completions(self, now_ms: int) -> list[Completion]:
        completions: list[Completion] = []
        now_us = now_ms * 1000
        while True:
            first: Lane | None = None
            first_us = now_us + 1
            for lane, waiting in self._lanes.items():
                if waiting and waiting[0][0] < first_us:
                    first, first_us = lane, waiting[0][0]
            if first is None:
                return completions
            self._finish(first, completions)

    def _finish(self, lane: Lane, completions: list[Completion]) -> None:
        ticket, _, effect = self._lanes[lane].popleft()[1]
        if isinstance(effect, SyncFile) and self._is_joined(lane, effect):
            self._joined[lane].append(ticket)
            return
        error = self._injected(effect) if self._failures else None
        if error is not None and isinstance(effect, SyncFile):
            self._file(effect.file).fail_sync(self._random)
        result: Result = None
        if error is None:
            try:
                result = self._perform(effect)
            except OSError as failure:
                error = failure.errno
        failure_of = None if error is None else DiskError(error, os.strerror(error))
        if self._joined[lane] and isinstance(effect, SyncFile):
            completions += [Completion(joined, result, failure_of) for joined in self._joined[lane]]
            self._joined[lane].clear()
        completions.append(Completion(ticket, result, failure_of))

    def _is_joined(self, lane: Lane, effect: SyncFile) -> bool:
        """Whether this sync waits for a later one of the same file, with only writes in between."""
        if self._random.random() >= self._pace.joined_chance:
            return False
        for _, later in self._lanes[lane]:
            if not isinstance(later.effect, (Write, SyncFile)) or later.effect.file != effect.file:
                return False
            if isinstance(later.effect, SyncFile):
                return True
        return False

    def _duration_us(self, effect: Effect) -> int:
        pace = self._pace
        kind = type(effect)
        if kind in SYNCING:
            span = pace.sync_us
        elif kind in READING:
            span = pace.read_us
        else:
            span = pace.write_us
        duration_us = draw_between(self._random, *span) * self.slowness
        if self._random.random() < pace.stall_chance:
            duration_us += self._random.randint(*pace.stall_us)
        return duration_us

    def _perform(self, effect: Effect) -> Result:
        directory = self._directory
        if self.read_only and type(effect) in CHANGING:
            raise OSError(errno.EROFS, "read-only")
        match effect:
            case Write(file, offset, chunks):
                data = b"".join(chunks)
                target = self._file(file)
                self._room(offset + len(data) - target.used_bytes)
                target.write(offset, data)
            case SyncFile(file):
                self._file(file).sync()
            case Create(file, reserve_bytes):
                if file in directory.files:
                    raise OSError(errno.EEXIST, file)
                self._room(reserve_bytes)
                directory.create(file, reserve_bytes)
            case SyncDirectory():
                directory.sync()
            case Read(file, offset, length):
                return bytes(self._file(file).content[offset : offset + length])
            case Resize(file, size_bytes):
                self._file(file).resize(size_bytes)
            case Rename(file, new):
                self._file(file)
                directory.rename(file, new)
            case Delete(file):
                self._file(file)
                directory.delete(file)
            case ListFiles():
                return directory.list()
            case MeasureSpace():
                return max(0, self.capacity_bytes - directory.used_bytes)
            case _:
                assert_never(effect)
        return None

    def _file(self, name: FileName) -> SimFile:
        file = self._directory.files.get(name)
        if file is None:
            raise OSError(errno.ENOENT, name)
        return file

    def _room(self, more_bytes: int) -> None:
        if more_bytes > 0 and self._directory.used_bytes + more_bytes > self.capacity_bytes:
            raise OSError(errno.ENOSPC, "full")

    # Faults.

    def crash(self, loss: Loss = Loss.SOME) -> None:
        """The process is gone, with all its requests. With any loss but NONE the machine loses power, too."""
        for lane, waiting in self._lanes.items():
            # A few of the requests that were never reported may have been carried out, or begun.
            for _ in range(self._random.randint(0, len(waiting))):
                effect = waiting.popleft()[1].effect
                if not isinstance(effect, (SyncFile, SyncDirectory)):
                    self._perform_quietly(effect)
            waiting.clear()
            self._joined[lane].clear()
        self._busy_until_us.clear()
        self._directory.crash(self._random, loss)

    def _perform_quietly(self, effect: Effect) -> None:
        try:
            self._perform(effect)
        except OSError:
            # No process is left to report to.
            return

    def stall(self, now_ms: int, for_ms: int, lanes: Iterable[Lane] = Lane) -> None:
        """Does nothing for a while, and then continues."""
        for lane in lanes:
            stalled_us = max(self._stalled_until_us[lane], now_ms * 1000)
            until_us = max(stalled_us, (now_ms + for_ms) * 1000)
            more_us = until_us - stalled_us
            self._stalled_until_us[lane] = until_us
            self._lanes[lane] = deque((due_us + more_us, request) for due_us, request in self._lanes[lane])
            self._busy_until_us[lane] = max(self._busy_until_us[lane] + more_us, until_us)

    def leap(self, by_ms: int) -> None:
        """The world's time has just advanced by so much in one step: all pending requests, and the ends of stalls, are
        postponed by the same time."""
        by_us = by_ms * 1000
        for lane in Lane:
            self._stalled_until_us[lane] += by_us
            self._lanes[lane] = deque((due_us + by_us, request) for due_us, request in self._lanes[lane])
            self._busy_until_us[lane] += by_us

    def fail_next(self, kind: type[Effect], number: int, count: int = 1) -> None:
        """Lets the next `count` effects of this kind fail with this `errno`."""
        self._failures[kind, number] += count

    def heal(self) -> None:
        """Cancels all injected failures that have not occurred yet."""
        self._failures.clear()

    def calm_down(self) -> None:
        """Turns off random stalls."""
        self._pace = msgspec.structs.replace(self._pace, stall_chance=0.0)

    def hurry(self, now_ms: int) -> None:
        """Ends stalls: postponed requests are done soon, and nothing takes longer than usual from now on."""
        self.slowness = 1
        self._stalled_until_us.clear()
        for lane, waiting in self._lanes.items():
            at_us = now_ms * 1000
            for place, (due_us, request) in enumerate(waiting):
                at_us = min(due_us, at_us + self._duration_us(request.effect))
                waiting[place] = (at_us, request)
            self._busy_until_us[lane] = at_us

    def _injected(self, effect: Effect) -> int | None:
        for (kind, number), count in self._failures.items():
            if count and isinstance(effect, kind):
                self._failures[kind, number] -= 1
                return number
        return None

    def flip_bit(self, file: FileName, bit: int) -> None:
        self._damaged = self._directory.files[file]
        self.was_damaged = True
        self._damaged.flip(bit)

    def truncate_file(self, file: FileName, size_bytes: int) -> None:
        self._damaged = self._directory.files[file]
        self.was_damaged = True
        self._damaged.resize(size_bytes)
        self._damaged.sync()

    @property
    def damaged_file(self) -> FileName | None:
        """Returns the file that a flipped bit or a cut damaged last, as long as it exists, under its current name."""
        if self._damaged is None:
            return None
        return next((name for name, file in self._directory.files.items() if file is self._damaged), None)

    def lose_file(self, file: FileName) -> None:
        self._directory.delete(file)
        self._directory.sync()

    def wipe(self) -> None:
        """Replaces the disk by an empty one, after a crash."""
        self.crash(Loss.ALL)
        self._directory = SimDirectory()

    def copy(self) -> dict[FileName, bytes]:
        """Returns all files at one moment, as a snapshot of a file system does."""
        return {name: bytes(file.content) for name, file in self._directory.files.items()}

    def put_back(self, files: Mapping[FileName, bytes]) -> None:
        """Replaces everything by an older copy, after a crash."""
        self.crash(Loss.ALL)
        self._directory = SimDirectory(files)

    @property
    def used_bytes(self) -> int:
        return self._directory.used_bytes

    def sizes(self) -> dict[FileName, int]:
        return {info.file: info.size_bytes for info in self._directory.list()}

    def content(self, file: FileName) -> bytes:
        return bytes(self._directory.files[file].content)


def _worth_us(lane: deque[tuple[int, Request]]) -> int:
    for due_us, request in lane:
        if not isinstance(request.effect, Write):
            return due_us
    return lane[-1][0]
