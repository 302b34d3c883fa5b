"""Free space on disk: a watermark below which publishers are held back, and a reserve for all other writes.

The reserve is a file that takes up space. When the disk is full, work that frees space or logs an ack deletes it; it is
created again once there is room. Between the watermark and the reserve the log goes on, so that consumers can empty
their queues.
"""

import errno
from collections.abc import Callable

from pandomq.journal.effects import Create, Delete, DiskError, Lane, MeasureSpace, Result
from pandomq.journal.events import Event, SpaceBack, SpaceLow
from pandomq.journal.limits import SPACE_CHECK_MS, JournalSettings
from pandomq.journal.names import RESERVE
from pandomq.journal.outbox import DiskRequests, fault_of
from pandomq.journal.work import DiskFailed, Work, perform

FULL = (errno.ENOSPC, errno.EDQUOT)


def is_full(failure: DiskFailed) -> bool:
    return failure.error.number in FULL


class Space:
    __slots__ = (
        "_checked_ms",
        "_emit",
        "_making_reserve",
        "_min_bytes",
        "_outbox",
        "_reserve_bytes",
        "free_bytes",
        "low",
        "reserve_held",
    )

    def __init__(self, settings: JournalSettings, outbox: DiskRequests, emit: Callable[[Event], None]) -> None:
        self._outbox = outbox
        self._emit = emit
        self._min_bytes = settings.disk_free_bytes_min
        self._reserve_bytes = settings.reserve_bytes
        self._checked_ms = 0
        self._making_reserve = False
        self.free_bytes = 0
        self.low = False
        self.reserve_held = False

    def tick(self, now_ms: int) -> bool:
        """Returns whether it was time to measure again."""
        if now_ms - self._checked_ms < SPACE_CHECK_MS:
            return False
        self._checked_ms = now_ms
        self.measure()
        return True

    def measure(self) -> None:
        self._outbox.put(Lane.BULK, MeasureSpace(), self._measured)

    def give_up_reserve(self) -> Work[None]:
        """For work in the bulk lane that found the disk full and will try again."""
        if self.reserve_held:
            self.reserve_held = False
            yield from perform(Delete(RESERVE))
        self._raise(0)

    def _measured(self, result: Result) -> None:
        assert isinstance(result, int)
        self.free_bytes = result
        if result < self._min_bytes:
            self._raise(result)
        # A margin, so that the alarm does not flicker with every segment that comes and goes.
        elif self.low and result >= self._min_bytes + self._min_bytes // 8:
            self.low = False
            self._emit(SpaceBack(result))
        if not self.low and result >= self._min_bytes + self._reserve_bytes:
            self._make_reserve()

    def _raise(self, free_bytes: int) -> None:
        if not self.low:
            self.low = True
            self._emit(SpaceLow(free_bytes, self._min_bytes))

    def _make_reserve(self) -> None:
        if self.reserve_held or self._making_reserve or not self._reserve_bytes:
            return
        self._making_reserve = True
        self._outbox.put(Lane.BULK, Create(RESERVE, self._reserve_bytes), self._reserve_made, self._reserve_failed)

    def _reserve_made(self, _result: Result) -> None:
        self._making_reserve = False
        self.reserve_held = True

    def _reserve_failed(self, error: DiskError) -> None:
        self._making_reserve = False
        if error.number not in FULL:
            raise fault_of(Create(RESERVE, self._reserve_bytes), error)
