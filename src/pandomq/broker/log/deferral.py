"""Removed messages may enter the log a little later, together with the next entry that somebody waits for.

At everyday rates a batch holds one publish or one ack. Nobody waits for the entry of an ack: it is not confirmed, and
if the root crashes before the log has it, the message is delivered again, as if the ack had been lost on its
way. So the records of such a batch stay in the kernel, and the next batch with a publish, a command, or anything that a
client waits for is sealed with them: half the entries, writes and syncs. Otherwise they are sealed when
REMOVALS_DEFERRED_MS_MAX has passed.

While records wait, the state has changes that the log lacks. A snapshot must not be made then, and a root must not stop
proposing: it logs them first (`DiskLog.seal_removals`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pandomq.kernel import NEVER_MS
from pandomq.limits import REMOVALS_DEFERRED_MAX, REMOVALS_DEFERRED_MS_MAX

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker

PAUSE_MS: Final = 200
"""How long nothing is deferred after something needed a state that is equal to the log's."""


class Deferral:
    __slots__ = ("_broker", "_paused_until_ms", "due_ms")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._paused_until_ms = 0
        self.due_ms = NEVER_MS
        """The time at which the waiting records must be sealed; NEVER_MS if there are none."""

    @property
    def pending(self) -> bool:
        return self.due_ms != NEVER_MS

    def seal(self, now_ms: int) -> bytes | None:
        """Ends a batch: returns its entry, or None if it has none, or is sealed with a later one."""
        broker = self._broker
        may_wait = 0 < broker.engine.deferrable <= REMOVALS_DEFERRED_MAX
        if may_wait and not broker.held.is_unsealed and not broker.tracing.traced:
            if not self.pending:
                self.due_ms = now_ms + REMOVALS_DEFERRED_MS_MAX
            # The last condition is for a clock that was set back.
            if self._paused_until_ms <= now_ms < self.due_ms <= now_ms + REMOVALS_DEFERRED_MS_MAX:
                return None
        self.due_ms = NEVER_MS
        return broker.engine.seal(now_ms)

    def pause(self) -> None:
        """Somebody needs the state to be as the log has it: the next batches are sealed at once."""
        self._paused_until_ms = self._broker.now_ms + PAUSE_MS
        if self.pending:
            self.due_ms = 0

    def end(self) -> bytes | None:
        """Between batches: returns the entry of the waiting records, and defers nothing for a while. None if there are
        none, or if the next batch has to seal them because there are others, too."""
        waits = self.pending and self._broker.engine.deferrable
        self.pause()
        if not waits:
            return None
        self.due_ms = NEVER_MS
        return self._broker.engine.seal(self._broker.now_ms)
