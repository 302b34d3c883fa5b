"""Slows publishers a little while a backup catches up that could not do so otherwise.

A backup that was down reads the log while others write it. If they write faster than it reads it never catches up, and
the log that is kept for it grows. So a root checks periodically how far behind the backup is: if it would not arrive in
time at the present rate, publishers pause for a part of each period, and for a larger part the next time. The pauses
are bounded: a backup that is still slower is not waited for any longer (D13), and the log reports that.

A publisher pauses by not being read from (`Links.pace`); clients that do not publish notice nothing.
"""

from __future__ import annotations

import logging
from typing import Final

from pandomq.limits import MIB

log = logging.getLogger("pandomq")

LOOK_MS: Final = 2_000
ARRIVAL_MS: Final = 60_000
"""A backup that will have caught up by then does not need more than it gets."""
NEAR_BYTES: Final = 256 * MIB
"""A backup that is nearer than this is not slowed further: the last bytes would take for ever."""
PERIOD_MS: Final = 200
REST_PERCENT_STEP: Final = 5
REST_PERCENT_MAX: Final = 20
"""The percentage of the time. Together with the cost of catching up it has to stay below a third of the throughput."""
COMPLAIN_MS: Final = 60_000
"""How often the log reports that it is not enough."""


class Pacing:
    __slots__ = ("_backup", "_behind_bytes", "_complained_ms", "_looked_ms", "_now_ms", "rest_percent")

    def __init__(self) -> None:
        self._now_ms = self._looked_ms = 0
        self._behind_bytes: int | None = None
        """The distance at the last look."""
        self._complained_ms: int | None = None
        self._backup = ""
        self.rest_percent = 0

    @property
    def is_due(self) -> bool:
        """Whether it is time to look again how far the backups are behind."""
        return self._now_ms - self._looked_ms >= LOOK_MS

    def note_time(self, monotonic_ms: int) -> None:
        self._now_ms = monotonic_ms

    def look(self, behind_bytes: int | None, backup: str = "") -> None:
        """Takes the distance of the last backup, and its name; None if no backup reads the log to catch up."""
        self._backup = backup
        passed_ms, self._looked_ms = self._now_ms - self._looked_ms, self._now_ms
        before_bytes, self._behind_bytes = self._behind_bytes, behind_bytes
        if behind_bytes is None:
            self.rest_percent = 0
            self._complained_ms = None
            return
        if before_bytes is None:
            # The rate is known from the next look.
            return
        nearer_bytes = before_bytes - behind_bytes
        wanted_bytes = max(behind_bytes, NEAR_BYTES) * passed_ms // ARRIVAL_MS
        if nearer_bytes < wanted_bytes:
            self._slow_down(nearer_bytes, behind_bytes)
        elif nearer_bytes > 2 * wanted_bytes:
            self.rest_percent = max(self.rest_percent - REST_PERCENT_STEP, 0)

    def _slow_down(self, nearer_bytes: int, behind_bytes: int) -> None:
        if self.rest_percent < REST_PERCENT_MAX:
            self.rest_percent += REST_PERCENT_STEP
        elif nearer_bytes <= 0 and self._may_complain():
            self._complained_ms = self._now_ms
            log.warning(
                "the log grows faster than backup %s receives it: the backup is %d bytes behind, and publishers are "
                "slowed down",
                self._backup,
                behind_bytes,
            )

    def _may_complain(self) -> bool:
        return self._complained_ms is None or self._now_ms - self._complained_ms >= COMPLAIN_MS

    @property
    def resting(self) -> bool:
        """Publishers are not to be read from just now."""
        return self._now_ms % PERIOD_MS < self._rest_ms

    @property
    def wait_ms(self) -> int | None:
        """The time until that changes; None if it does not."""
        if not self.rest_percent:
            return None
        passed_ms = self._now_ms % PERIOD_MS
        return (self._rest_ms if passed_ms < self._rest_ms else PERIOD_MS) - passed_ms

    @property
    def _rest_ms(self) -> int:
        return PERIOD_MS * self.rest_percent // 100


assert REST_PERCENT_MAX < 33, "a backup that comes back costs publishers less than a third"
