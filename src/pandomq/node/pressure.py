"""Whether publishers are held back, and why: messages take too much memory, the disk is full or far behind, or backups
are missing. And whether they are to go slower for a while.

Publishers are blocked one by one as they publish; all are let go at once when there is no reason left. The same goes
for those who rest for a moment, who are not told.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pandomq.node.alarms import MemoryAlarm

if TYPE_CHECKING:
    from pandomq import kernel
    from pandomq.node.link import Link
    from pandomq.node.links import Links
    from pandomq.node.log import Log

log = logging.getLogger("pandomq")


class Pressure:
    __slots__ = ("_engine", "_links", "_log", "_was_there", "alarm")

    def __init__(self, memory_bytes_max: int, engine: kernel.Engine, links: Links, node_log: Log) -> None:
        self.alarm = MemoryAlarm(memory_bytes_max)
        self._engine = engine
        self._links = links
        self._log = node_log
        self._was_there = False

    @property
    def reason(self) -> str | None:
        """None if publishers may go on."""
        return "low on memory" if self.alarm.raised else self._log.holds_back

    def published(self, link: Link) -> None:
        reason = self.reason
        if reason is not None and not link.blocked:
            self._links.block(link, reason)
        elif self._log.rests and not link.paced:
            self._links.pace(link)

    def watch(self) -> None:
        """To be told when anything may have changed."""
        engine = self._engine
        if self.alarm.update(engine.held_bytes, engine.held_messages):
            if self.alarm.raised:
                log.warning("memory alarm: messages take %d bytes; publishers are held back", engine.held_bytes)
            else:
                log.info("memory alarm cleared")
        is_there = self.reason is not None
        if self._was_there and not is_there:
            self._links.unblock_all()
        self._was_there = is_there
        if not self._log.rests:
            self._links.unpace_all()
