"""Longer work with the disk, written as one generator that yields effects and gets their results.

    def copy(source, target) -> Work[None]:
        data = yield from read(source, 0, 4096)
        yield from perform(Write(target, 0, (data,)), SyncFile(target))

Effects that are yielded together enter the lane in this order, and the generator continues when all are done. If one
of them fails, `DiskFailed` is raised in the generator; uncaught, it ends the journal. A yield without effects suspends
the work until `Task.wake`. The code uses no clock and no file, so the same completions give the same result.
"""

from collections.abc import Callable, Generator
from typing import Generic, TypeAlias, TypeVar

from pandomq.journal.effects import DiskError, Effect, FileInfo, FileName, Lane, ListFiles, Read, Result
from pandomq.journal.outbox import DiskRequests, fault_of

T = TypeVar("T")

Work: TypeAlias = Generator[tuple[Effect, ...], list[Result], T]


class DiskFailed(Exception):
    """An effect of some work failed."""

    def __init__(self, effect: Effect, error: DiskError) -> None:
        super().__init__(effect, error)
        self.effect = effect
        self.error = error


def read(file: FileName, offset: int, length: int) -> Work[bytes]:
    (data,) = yield (Read(file, offset, length),)
    assert isinstance(data, bytes)
    return data


def list_files() -> Work[tuple[FileInfo, ...]]:
    (files,) = yield (ListFiles(),)
    assert isinstance(files, tuple)
    return files


def perform(*effects: Effect) -> Work[None]:
    if effects:
        yield effects


def pause() -> Work[None]:
    """Waits until `Task.wake`."""
    yield ()


class Task(Generic[T]):
    """One piece of work under way in one lane."""

    __slots__ = ("_done", "_failure", "_lane", "_outbox", "_results", "_wanted", "_work", "over", "parked")

    def __init__(self, outbox: DiskRequests, lane: Lane, work: Work[T], done: Callable[[T], None]) -> None:
        self._outbox = outbox
        self._lane = lane
        self._work = work
        self._done = done
        self._results: list[Result] = []
        self._wanted = 0
        self._failure: DiskFailed | None = None
        self.parked = False
        self.over = False

    def start(self) -> "Task[T]":
        self._advance(lambda: next(self._work))
        return self

    def wake(self) -> None:
        if self.parked:
            self.parked = False
            self._advance(lambda: self._work.send([]))

    def _advance(self, step: Callable[[], tuple[Effect, ...]]) -> None:
        try:
            effects = step()
        except StopIteration as end:
            self.over = True
            self._done(end.value)
            return
        except DiskFailed as failure:
            self.over = True
            raise fault_of(failure.effect, failure.error) from failure
        if not effects:
            self.parked = True
            return
        self._results = [None] * len(effects)
        self._wanted = len(effects)
        self._failure = None
        for place, effect in enumerate(effects):
            self._put(place, effect)

    def _put(self, place: int, effect: Effect) -> None:
        def done(result: Result) -> None:
            self._results[place] = result
            self._arrived()

        def failed(error: DiskError) -> None:
            if self._failure is None:
                self._failure = DiskFailed(effect, error)
            self._arrived()

        self._outbox.put(self._lane, effect, done, failed)

    def _arrived(self) -> None:
        self._wanted -= 1
        if self._wanted:
            return
        failure = self._failure
        if failure is None:
            self._advance(lambda: self._work.send(self._results))
        else:
            self._advance(lambda: self._work.throw(failure))
