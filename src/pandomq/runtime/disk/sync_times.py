"""How long the disk takes to sync the log. The log's lane writes it, in a thread of its own or in the loop; the loop
reads it."""

import logging
from typing import Final

from pandomq.node.views.records import SyncTimesView

log = logging.getLogger("pandomq")

SLOW_S: Final = 0.5
"""A slower sync is logged: a root whose disk stalls will step down soon."""


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
            log.warning(
                "the disk took %.1f s to sync the log, and confirms were delayed meanwhile; a root of several brokers "
                "steps down when a sync takes longer than disk_stall_ms",
                elapsed_s,
            )

    def view(self) -> SyncTimesView:
        return SyncTimesView(self._count, self._total_s, self._longest_s)
