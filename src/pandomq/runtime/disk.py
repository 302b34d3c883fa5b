"""The disk under a journal: a directory, and one thread for each lane.

A lane's thread takes all that has gathered while it was busy, joins what can be joined (`disk_runs`) and carries it out
in order: whatever a burst of commits was, the disk sees one write for each place and one sync. Completions wait here
until they are taken; `wake` is called, from a thread, when there are some.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Final

from pandomq.journal.effects import (
    Completion,
    Delete,
    DiskError,
    Effect,
    FileName,
    Lane,
    Rename,
    Request,
    Result,
    SyncFile,
    Write,
)
from pandomq.runtime.disk_files import DirectoryFiles
from pandomq.runtime.disk_lock import DirectoryLock
from pandomq.runtime.disk_runs import Run, joined
from pandomq.runtime.sync_times import SyncTimes

SWITCH_INTERVAL_S: Final = 0.0005
"""A lane that comes back from the disk waits at most this long for a busy event loop to let it go on; Python's own five
milliseconds are longer than a sync."""


class Disk:
    def __init__(self, directory: Path, wake: Callable[[], None], log_times: SyncTimes | None = None) -> None:
        """Raises InUseFault or DiskFault if the directory cannot be used."""
        sys.setswitchinterval(min(SWITCH_INTERVAL_S, sys.getswitchinterval()))
        self._lock = DirectoryLock(directory)
        self._wake = wake
        self._guard = threading.Lock()
        self._completions: list[Completion] = []
        self._lanes = {
            lane: _LaneThread(
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
        with self._guard:
            completions, self._completions = self._completions, []
        return completions

    def close(self) -> None:
        """Waits for what was submitted, and gives the directory up."""
        for thread in self._lanes.values():
            thread.stop()
        for thread in self._lanes.values():
            thread.join()
        self._lock.release()

    def _report(self, completions: list[Completion]) -> None:
        with self._guard:
            first = not self._completions
            self._completions += completions
        if first:
            self._wake()

    def _gone(self, files: list[FileName]) -> None:
        for thread in self._lanes.values():
            thread.forget(files)


class _LaneThread(threading.Thread):
    def __init__(
        self,
        lane: Lane,
        files: DirectoryFiles,
        report: Callable[[list[Completion]], None],
        gone: Callable[[list[FileName]], None],
        times: SyncTimes | None,
    ) -> None:
        # A disk that does not answer must not keep the process from ending.
        super().__init__(name=f"disk-{lane.value}", daemon=True)
        self._files = files
        self._report = report
        self._gone = gone
        self._times = times
        self._condition = threading.Condition(threading.Lock())
        self._requests: list[Request] = []
        self._forgotten: list[FileName] = []
        self._stopping = False

    def put(self, requests: list[Request]) -> None:
        with self._condition:
            self._requests += requests
            self._condition.notify()

    def forget(self, files: list[FileName]) -> None:
        with self._condition:
            self._forgotten += files
            self._condition.notify()

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            self._condition.notify()

    def run(self) -> None:
        while True:
            with self._condition:
                while not (self._requests or self._forgotten or self._stopping):
                    self._condition.wait()
                requests, self._requests = self._requests, []
                forgotten, self._forgotten = self._forgotten, []
                if self._stopping and not requests:
                    break
            for file in forgotten:
                self._files.forget(file)
            self._carry_out(requests)
        self._files.close()

    def _carry_out(self, requests: list[Request]) -> None:
        for run in joined(requests):
            started_s = perf_counter()
            completions = perform_run(run, self._files)
            if self._times is not None and isinstance(run.effects[-1], SyncFile):
                self._times.note(perf_counter() - started_s)
            self._report(completions)
            gone = [request.effect.file for request in run.requests if isinstance(request.effect, Delete | Rename)]
            if gone:
                self._gone(gone)


class InlineDisk:
    """The same without threads, for tools: what is submitted is done at once. The caller has the directory locked, or
    only reads."""

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


def perform_run(run: Run, files: DirectoryFiles) -> list[Completion]:
    result: Result = None
    effect: Effect | None = None
    try:
        for effect in run.effects:
            result = files.perform(effect)
    except OSError as failure:
        number = failure.errno or errno.EIO
        error = DiskError(number, os.strerror(number))
        # A sync that failed says nothing about the writes before it, except that nobody may rely on them.
        written = isinstance(effect, SyncFile)
        return [
            Completion(request.ticket, None, None if written and isinstance(request.effect, Write) else error)
            for request in run.requests
        ]
    return [Completion(request.ticket, result) for request in run.requests]
