"""The orderly end of a journal: everything is synced, and the store records that."""

from __future__ import annotations

from collections.abc import Callable

from pandomq.journal.doubt import at_closing
from pandomq.journal.effects import Lane
from pandomq.journal.events import Closed, Event
from pandomq.journal.hard_state import StateStore
from pandomq.journal.outbox import DiskRequests
from pandomq.journal.segments.appender import Appender
from pandomq.journal.segments.truncation import Truncation
from pandomq.journal.work import Task, Work, pause, perform


class Closing:
    __slots__ = ("_appender", "_emit", "_outbox", "_states", "_task", "_truncation")

    def __init__(
        self,
        appender: Appender,
        truncation: Truncation,
        states: StateStore,
        outbox: DiskRequests,
        emit: Callable[[Event], None],
    ) -> None:
        self._appender = appender
        self._truncation = truncation
        self._states = states
        self._outbox = outbox
        self._emit = emit
        self._task: Task[None] | None = None

    def begin(self) -> None:
        """`Closed` is the last event."""
        self._appender.sync()
        self._task = Task(self._outbox, Lane.LOG, self._work(), lambda _: None).start()

    def wake(self) -> None:
        """The log is idle."""
        if self._task is not None:
            self._task.wake()

    def _work(self) -> Work[None]:
        while not self._appender.idle or self._truncation.active:
            yield from pause()
        yield from perform(*self._appender.closing())
        if self._states.state.unsynced_boot:
            self._states.save(at_closing(self._states.state), lambda: self._emit(Closed()))
        else:
            self._emit(Closed())
