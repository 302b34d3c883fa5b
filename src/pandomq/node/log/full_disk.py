"""A root whose disk is nearly full hands over, if it can: publishers would wait here while another broker has room.

It hands over as it does before it stops. Whether its successor has more room is not known. If the successor has none
either, it hands over in turn, but only after a while, so that the root does not change often among brokers that are all
full.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pandomq.node.log.replication import Replication

log = logging.getLogger("pandomq")

PATIENCE_MS: Final = 60_000
"""The time from one hand-over, or from the election of a broker whose disk is full, to the next hand-over."""


class FullDisk:
    __slots__ = ("_due_ms", "_replication", "low")

    def __init__(self, replication: Replication) -> None:
        self._replication = replication
        self.low = False
        self._due_ms: int | None = None

    def is_low(self, free_bytes: int, min_bytes: int) -> None:
        log.warning(
            "disk alarm: only %d bytes are free, and free_bytes_min is %d; publishing connections are blocked: "
            "free disk space",
            free_bytes,
            min_bytes,
        )
        self.low = True
        self._due_ms = 0 if self._replication.life.took_over else None

    def has_room(self) -> None:
        log.info("disk alarm cleared: publishing connections are unblocked")
        self.low = False

    def tick(self, monotonic_ms: int) -> None:
        if not (self.low and self._replication.life.took_over and self._replication.replicated):
            self._due_ms = None
        elif self._due_ms is None:
            self._due_ms = monotonic_ms + PATIENCE_MS
        elif monotonic_ms >= self._due_ms:
            self._due_ms = monotonic_ms + PATIENCE_MS
            self._replication.hand_over(None, self._ended)

    def _ended(self, done: bool, text: str) -> None:
        if done:
            log.warning("the disk of this broker is nearly full, and it stepped down as root: %s", text)
        else:
            log.warning("the disk of this broker is nearly full, but no backup could replace it as root: %s", text)
