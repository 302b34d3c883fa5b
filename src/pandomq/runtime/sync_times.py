"""How long the disk takes to make the log safe. Noted by the disk's thread, read by the loop."""

import logging
from typing import Final

from pandomq.node.view_records import SyncTimesView

log = logging.getLogger("pandomq")

SLOW_S: Final = 0.5
"""What takes longer is worth a line: a root whose disk stalls resigns soon."""


class SyncTimes:
    __slots__ = ("_count", "_longest_s", "_total_s")

    def __init__(self) -> None:
        self._count = 0
        self._total_s = self._longest_s = 0.0

    def note(self, elapsed_s: float) -> None:
        self._count += 1
        self._total_s += elapsed_s
        self._longest_s = max(self._longest_s, elapsed_s)
        if elapsed_s > SLOW_S:
            log.warning("the disk took %.1f s to make the log safe", elapsed_s)

    def view(self) -> SyncTimesView:
        return SyncTimesView(self._count, self._total_s, self._longest_s)
