"""Whether publishers are held back, and why: messages take too much memory, the disk is full or far behind, or backups
are missing. And whether they are to go slower for a while.

Publishers are blocked one by one as they publish; all are let go at once when there is no reason left. The same goes
for those who rest for a moment, who are not told.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from pandomq.node.alarms import MemoryAlarm

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.node.link import Link
    from pandomq.node.links import Links
    from pandomq.node.log import Log

log = logging.getLogger("pandomq")

LOW_ON_MEMORY: Final = "low on memory"


class Pressure:
    __slots__ = ("_engine", "_links", "_log", "_streams", "_tracing", "_was", "alarm", "engines")

    def __init__(self, memory_bytes_max: int, broker: Broker, links: Links, node_log: Log) -> None:
        self.alarm = MemoryAlarm(memory_bytes_max)
        self._engine = engine = broker.engine
        self._streams = broker.streams
        self._tracing = broker.tracing
        self.engines = [engine]
        """All that hold messages: that of the broker, and that of the front."""
        self._links = links
        self._log = node_log
        self._was: str | None = None
        """The reason when it was last looked at."""

    @property
    def reason(self) -> str | None:
        """None if publishers may go on."""
        return LOW_ON_MEMORY if self.alarm.raised else self._log.holds_back

    def published(self, link: Link) -> None:
        # The log concerns those who are served by the broker itself; the root holds the others back in its own time.
        is_direct = link.client is None or link.client.broker.engine is self._engine
        reason = self.reason if is_direct else LOW_ON_MEMORY if self.alarm.raised else None
        if reason is not None and not link.blocked:
            self._links.block(link, reason)
        elif is_direct and self._log.rests and not link.paced:
            self._links.pace(link)

    def watch(self) -> None:
        """To be told when anything may have changed."""
        held_bytes, held_messages = self._streams.held_bytes, 0
        for engine in self.engines:
            held_bytes += engine.held_bytes
            held_messages += engine.held_messages
        if self.alarm.update(held_bytes, held_messages):
            if self.alarm.raised:
                log.warning("memory alarm: messages take %d bytes; publishers are held back", held_bytes)
            else:
                log.info("memory alarm cleared")
        reason = self.reason
        if reason != self._was:
            if reason is None:
                self._links.unblock_all()
                self._tracing.note("publishers-go-on", reason=self._was)
            else:
                self._tracing.note("publishers-wait", reason=reason)
            self._was = reason
        if not self._log.rests:
            self._links.unpace_all()
