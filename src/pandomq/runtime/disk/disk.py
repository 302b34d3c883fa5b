"""The disk under a journal: a directory, and one thread for each lane.

A lane carries out the requests that accumulated while it was busy in order, and joins those that can be joined
(`disk_runs`): for a burst of commits the disk gets one write for each place and one sync. The lane of the log uses the
compiled writer if there is one (`log_lane`). Completions wait here until they are taken; `Disk.fd` is readable while
there are some that came after the last call of `take_completions`.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from pandomq.journal.effects import Completion, FileName, Lane, Request
from pandomq.runtime.disk.disk_files import DirectoryFiles
from pandomq.runtime.disk.disk_lock import DirectoryLock
from pandomq.runtime.disk.disk_runs import joined
from pandomq.runtime.disk.lane_thread import LaneThread, perform_run
from pandomq.runtime.disk.log_lane import COMPILED, LogLane
from pandomq.runtime.disk.sync_times import SyncTimes

SWITCH_INTERVAL_S: Final = 0.0005
"""A lane that returns from the disk waits at most this long until a busy event loop lets it continue; Python's default
of five milliseconds is longer than a sync."""


class Disk:
    def __init__(self, directory: Path, log_times: SyncTimes | None = None, *, compiled: bool = COMPILED) -> None:
        """Raises InUseFault or DiskFault if the directory cannot be used."""
        sys.setswitchinterval(min(SWITCH_INTERVAL_S, sys.getswitchinterval()))
        self._lock = DirectoryLock(directory)
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._guard = threading.Lock()
        self._completions: list[Completion] = []
        self._log: LogLane | None = None
        if compiled:
            self._log = LogLane(DirectoryFiles(directory), self.fd, self._gone, log_times)
        self._lanes = {
            lane: self._log
            if self._log is not None and lane is Lane.LOG
            else LaneThread(
                lane,
                DirectoryFiles(directory, drops_cache=lane is Lane.BULK),
                self._report,
                self._gone,
                log_times if lane is Lane.LOG else None,
            )
            for lane in Lane
        }
        for thread in self._lanes.values():
            thread.start()

    def submit(self, requests: list[Request]) -> None:
        if len(requests) == 1:
            self._lanes[requests[0].lane].put(requests)
            return
        by_lane: dict[Lane, list[Request]] = {}
        for request in requests:
            by_lane.setdefault(request.lane, []).append(request)
        for lane, some in by_lane.items():
            self._lanes[lane].put(some)

    def take_completions(self) -> list[Completion]:
        # Results that come after this make the descriptor readable again.
        if self.fd >= 0:
            with suppress(BlockingIOError):
                os.eventfd_read(self.fd)
        return self._take()

    def _take(self) -> list[Completion]:
        with self._guard:
            completions, self._completions = self._completions, []
        if self._log is not None:
            completions += self._log.take()
        return completions

    def close(self) -> None:
        """Waits for the submitted requests, and releases the directory; nothing may watch `fd` any more. The last
        completions can be taken afterwards."""
        completions: list[Completion] = []
        if self._log is not None:
            done = select.poll()
            done.register(self.fd, select.POLLIN)
            while self._log.busy:
                done.poll()
                completions += self.take_completions()
        for thread in self._lanes.values():
            thread.stop()
        for thread in self._lanes.values():
            thread.join()
        self._completions = completions + self._take()
        os.close(self.fd)
        self.fd = -1
        self._lock.release()

    def _report(self, completions: list[Completion]) -> None:
        with self._guard:
            first = not self._completions
            self._completions += completions
        if first:
            os.eventfd_write(self.fd, 1)

    def _gone(self, files: list[FileName]) -> None:
        for thread in self._lanes.values():
            thread.forget(files)


class InlineDisk:
    """A disk without threads, for tools: requests are carried out at once. The caller holds the lock of the directory,
    or only reads."""

    def __init__(self, directory: Path) -> None:
        self._files = DirectoryFiles(directory)
        self._completions: list[Completion] = []

    def submit(self, requests: list[Request]) -> None:
        for run in joined(requests):
            self._completions += perform_run(run, self._files)

    def take_completions(self) -> list[Completion]:
        completions, self._completions = self._completions, []
        return completions

    def close(self) -> None:
        self._files.close()
