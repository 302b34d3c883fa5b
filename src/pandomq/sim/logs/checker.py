"""The events that a checker of logs may observe. It raises BrokenPromise as soon as it sees a violation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandomq.ids import LogIndex
    from pandomq.replica.effects import Effect
    from pandomq.replica.protocol.entries import LogEntry
    from pandomq.sim.logs.history import History
    from pandomq.sim.logs.machine import LogMachine


class LogChecker:
    def __init__(self, history: History) -> None:
        self.history = history

    def told(self, machine: LogMachine, effect: Effect) -> None:
        """The replica returned this effect; its log is as it was at that time."""

    def confirmed(self, machine: LogMachine, index: LogIndex, entry: LogEntry) -> None:
        """A client is told that its entry is committed."""

    def stepped(self, machine: LogMachine) -> None: ...

    def finished(self) -> None:
        """All faults have ended, and every machine has had time to catch up."""
