"""A lane's thread: it takes all requests that accumulated while it was busy, joins those that can be joined
(`disk_runs`), and carries them out in order."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from time import perf_counter

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
from pandomq.runtime.disk.disk_files import DirectoryFiles, close_unneeded
from pandomq.runtime.disk.disk_runs import Run, joined
from pandomq.runtime.disk.sync_times import SyncTimes

Report = Callable[[list[Completion]], None]
Gone = Callable[[list[FileName]], None]
Written = Callable[[FileName, DirectoryFiles], None]


class LaneThread(threading.Thread):
    def __init__(
        self,
        lane: Lane,
        files: DirectoryFiles,
        report: Report,
        gone: Gone,
        times: SyncTimes | None = None,
        written: Written = lambda file, files: None,
    ) -> None:
        """In the thread, before the completions are reported, `gone` is called with files that lost their names, and
        `written` with a file that was written or synced."""
        # A disk that does not answer must not prevent the end of the process.
        super().__init__(name=f"disk-{lane.value}", daemon=True)
        self._files = files
        self._report = report
        self._gone = gone
        self._times = times
        self._written = written
        self._condition = threading.Condition(threading.Lock())
        self._requests: list[Request] = []
        self._forgotten: list[FileName] = []
        self._released: list[int] = []
        self._stopping = False

    def put(self, requests: list[Request]) -> None:
        with self._condition:
            self._requests += requests
            self._condition.notify()

    def forget(self, files: list[FileName]) -> None:
        """These files were deleted or renamed."""
        with self._condition:
            self._forgotten += files
            self._condition.notify()

    def release(self, fds: list[int]) -> None:
        """Closes these open files: closing the last one of a deleted file takes as long as freeing its space."""
        with self._condition:
            self._released += fds
            self._condition.notify()

    def stop(self) -> None:
        with self._condition:
            self._stopping = True
            self._condition.notify()

    def run(self) -> None:
        while True:
            with self._condition:
                while not (self._requests or self._forgotten or self._released or self._stopping):
                    self._condition.wait()
                requests, self._requests = self._requests, []
                forgotten, self._forgotten = self._forgotten, []
                released, self._released = self._released, []
                stopping = self._stopping
            for file in forgotten:
                self._files.forget(file)
            for fd in released:
                close_unneeded(fd)
            if stopping and not requests:
                break
            self._carry_out(requests)
        self._files.close()

    def _carry_out(self, requests: list[Request]) -> None:
        for run in joined(requests):
            started_s = perf_counter()
            completions = perform_run(run, self._files)
            effect = run.effects[-1]
            if self._times is not None and isinstance(effect, SyncFile):
                self._times.note(perf_counter() - started_s)
            if isinstance(effect, Write | SyncFile) and all(completion.error is None for completion in completions):
                self._written(effect.file, self._files)
            elif isinstance(effect, Delete):
                self._gone([effect.file])
            elif isinstance(effect, Rename):
                self._gone([effect.file, effect.new])
            self._report(completions)


def perform_run(run: Run, files: DirectoryFiles) -> list[Completion]:
    result: Result = None
    effect: Effect | None = None
    try:
        for effect in run.effects:
            result = files.perform(effect)
    except OSError as failure:
        number = failure.errno or errno.EIO
        error = DiskError(number, os.strerror(number))
        # A failed sync leaves the writes before it in an unknown state.
        written = isinstance(effect, SyncFile)
        return [
            Completion(request.ticket, None, None if written and isinstance(request.effect, Write) else error)
            for request in run.requests
        ]
    return [Completion(request.ticket, result) for request in run.requests]
