"""Requests on their way to the disk, and the callbacks for their completions.

The caller adds an effect with a callback for its success and, if the caller can handle it, one for its failure. A
failure without a callback is final.
"""

from collections.abc import Callable
from typing import NamedTuple

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
from pandomq.journal.faults import DiskFault, disk_fault

WORDS: dict[type[Effect], str] = {
    Create: "create",
    Write: "write to",
    SyncFile: "sync",
    SyncDirectory: "sync the directory",
    Read: "read",
    Resize: "cut",
    Rename: "rename",
    Delete: "delete",
    ListFiles: "list the directory",
    MeasureSpace: "ask for the free space",
}

Done = Callable[[Result], None]
Failed = Callable[[DiskError], None]


class _Waiting(NamedTuple):
    effect: Effect
    done: Done | None
    failed: Failed | None


class DiskRequests:
    __slots__ = ("_last_ticket", "_requests", "_waiting")

    def __init__(self) -> None:
        self._requests: list[Request] = []
        self._waiting: dict[Ticket, _Waiting] = {}
        self._last_ticket = 0

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def next_ticket(self) -> Ticket:
        self._last_ticket += 1
        return Ticket(self._last_ticket)

    def put(self, lane: Lane, effect: Effect, done: Done | None = None, failed: Failed | None = None) -> None:
        ticket = self.next_ticket()
        self._waiting[ticket] = _Waiting(effect, done, failed)
        self._requests.append(Request(ticket, lane, effect))

    def take(self) -> list[Request]:
        requests, self._requests = self._requests, []
        return requests

    def completed(self, completion: Completion) -> None:
        """Raises DiskError for a failure without a callback."""
        effect, done, failed = self._waiting.pop(completion.ticket)
        if completion.error is not None:
            if failed is None:
                raise fault_of(effect, completion.error)
            failed(completion.error)
        elif done is not None:
            done(completion.result)


def fault_of(effect: Effect, error: DiskError) -> DiskFault:
    return disk_fault(error, WORDS[type(effect)], file_of(effect))


def file_of(effect: Effect) -> FileName | None:
    if isinstance(effect, SyncDirectory | ListFiles | MeasureSpace):
        return None
    return effect.file
