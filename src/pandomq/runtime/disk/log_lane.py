"""The log's lane with the compiled writer: writes and syncs of open files go to `LogWriter`, all else to a thread.

Confirms wait for the groups of the log, which are writes and syncs. The writer carries them out without the
interpreter's lock, so that a busy event loop delays neither the disk nor itself.

The journal relies on the order of the lane: each request is carried out after all earlier ones of the lane, and
completions come in the same order. The appender counts on it when it assigns completions to groups, and so does all
work that creates, writes, syncs and renames a file in one go, a resize after the sync of a seal, and the second copy
of the hard state after the sync of the first. Each of the two keeps its own order. Between them the order holds because
at most one of them has requests: a request for the other one waits here until the results of all earlier requests were
taken. Changes are rare: a file goes to the writer after the thread has written to it once, and stays there until it is
deleted or renamed, in any lane.

All methods but `forget` are for one caller, the event loop. Requests that wait here, for a change or because the
writer's ring is full, are bounded by the journal (`Journal.pending_bytes`).
"""

from __future__ import annotations

import importlib.util
import os
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from pandomq.journal.effects import Completion, DiskError, FileName, Lane, Request, SyncFile, Ticket, Write
from pandomq.runtime.disk.disk_files import DirectoryFiles, close_unneeded
from pandomq.runtime.disk.disk_runs import RUN_BYTES_MAX
from pandomq.runtime.disk.lane_thread import Gone, LaneThread
from pandomq.runtime.disk.sync_times import SyncTimes

COMPILED: Final = (
    not os.environ.get("PANDOMQ_PLAIN") and importlib.util.find_spec("pandomq.runtime.disk._log_writer") is not None
)
"""Whether the writer may be used; otherwise the log's lane is a `LaneThread`, like the others."""

if TYPE_CHECKING or COMPILED:
    from pandomq.runtime.disk._log_writer import LogWriter

WrittenOrSynced = Write | SyncFile

RING_REQUESTS_MAX: Final = 1024
"""Requests in the writer's ring. A group of the log is three; a burst of more than 300 groups waits in Python."""
WRITER_FILES_MAX: Final = 8
"""Open files of the writer. The log's lane writes to one segment, sometimes to the next one, and to the hard state."""


class LogLane:
    def __init__(self, files: DirectoryFiles, wake_fd: int, gone: Gone, times: SyncTimes | None) -> None:
        """`wake_fd` is an eventfd that becomes readable when `take` has results."""
        self._wake_fd = wake_fd
        self._times = times
        self._guard = threading.Lock()
        self._thread_results: list[Completion] = []
        self._in_thread = 0
        self._in_writer = 0
        self._waiting: deque[Request] = deque()
        self._fds: dict[FileName, int] = {}
        """The open files of the writer."""
        self._gone: deque[FileName] = deque()
        """Files that lost their names and may be in the table above."""
        self._handed_over = self._taken = 0
        """Requests of the writer, since the start."""
        self._unneeded: deque[tuple[int, int]] = deque()
        """Open files that no later request uses, and the number of requests after which the writer is done with
        them."""
        self._writer = LogWriter(wake_fd, requests_max=RING_REQUESTS_MAX, run_bytes_max=RUN_BYTES_MAX)
        self._thread = LaneThread(Lane.LOG, files, self._report, gone, times, self._share)

    def start(self) -> None:
        self._thread.start()

    def put(self, requests: list[Request]) -> None:
        self._waiting += requests
        self._hand_over()

    def take(self) -> list[Completion]:
        """Results since the last call. The caller must have read `wake_fd` before."""
        with self._guard:
            completions, self._thread_results = self._thread_results, []
        self._in_thread -= len(completions)
        done = self._writer.take()
        self._in_writer -= len(done)
        for ticket, number, synced_s in done:
            error = DiskError(number, os.strerror(number)) if number else None
            completions.append(Completion(Ticket(ticket), None, error))
            if synced_s and self._times is not None:
                self._times.note(synced_s)
        self._taken += len(done)
        if self._waiting or self._gone or self._unneeded:
            self._hand_over()
        return completions

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._in_thread or self._in_writer)

    def forget(self, files: list[FileName]) -> None:
        """May be called in any thread, before the completion that removed the names is taken."""
        self._gone += files
        self._thread.forget(files)

    def stop(self) -> None:
        """To be called when it is not busy."""
        self._writer.stop()
        self._thread.release([*self._fds.values(), *(fd for fd, _ in self._unneeded)])
        self._thread.stop()

    def join(self) -> None:
        self._thread.join()

    # The two ways.

    def _hand_over(self) -> None:
        self._drop_gone()
        waiting = self._waiting
        for_thread: list[Request] = []
        for_writer = 0
        while waiting:
            effect = waiting[0].effect
            fd = self._fds.get(effect.file) if isinstance(effect, WrittenOrSynced) else None
            if fd is None:
                if self._in_writer + for_writer:
                    break
                for_thread.append(waiting.popleft())
            elif self._in_thread or for_thread or not self._add(waiting[0], fd):
                break
            else:
                waiting.popleft()
                for_writer += 1
        if for_thread:
            self._in_thread += len(for_thread)
            self._thread.put(for_thread)
        elif for_writer:
            self._in_writer += for_writer
            self._handed_over += for_writer
            self._writer.submit()

    def _add(self, request: Request, fd: int) -> bool:
        """Returns False if the ring is full."""
        effect = request.effect
        if isinstance(effect, Write):
            return self._writer.add_write(request.ticket, fd, effect.offset, effect.chunks)
        return self._writer.add_sync(request.ticket, fd)

    def _drop_gone(self) -> None:
        while self._gone:
            with self._guard:
                fd = self._fds.pop(self._gone.popleft(), None)
            if fd is not None:
                self._unneeded.append((fd, self._handed_over))
        unused = []
        while self._unneeded and self._unneeded[0][1] <= self._taken:
            unused.append(self._unneeded.popleft()[0])
        if unused:
            self._thread.release(unused)

    # In the thread.

    def _report(self, completions: list[Completion]) -> None:
        with self._guard:
            first = not self._thread_results
            self._thread_results += completions
        if first:
            os.eventfd_write(self._wake_fd, 1)

    def _share(self, file: FileName, files: DirectoryFiles) -> None:
        """Opens the file for the writer, which has no requests while the thread has."""
        with self._guard:
            if file in self._fds:
                return
            while len(self._fds) >= WRITER_FILES_MAX:
                close_unneeded(self._fds.pop(next(iter(self._fds))))
            # If the process may open no more files, the thread goes on writing to this one.
            with suppress(OSError):
                self._fds[file] = files.duplicate(file)
