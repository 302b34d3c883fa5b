"""Decides whether publishers are held back, and why: messages take too much memory, the disk is full or far behind, or
backups are missing. It also decides whether publishers are slowed for a while.

Publishers are blocked one by one as they publish, and all are released at once when no reason is left. The same applies
to publishers that only pause for a moment; these are not notified.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from pandomq.node.alarms import MemoryAlarm

if TYPE_CHECKING:
    from pandomq.broker.broker import Broker
    from pandomq.node.clients.client_link import ClientLink
    from pandomq.node.clients.client_links import ClientLinks
    from pandomq.node.data.sessions import DataSessions
    from pandomq.node.log.log import Log

log = logging.getLogger("pandomq")

LOW_ON_MEMORY: Final = "low on memory"


class Pressure:
    __slots__ = ("_engine", "_links", "_log", "_streams", "_tracing", "_was", "alarm", "brokers", "data")

    def __init__(self, memory_bytes_max: int, broker: Broker, links: ClientLinks, node_log: Log) -> None:
        self.alarm = MemoryAlarm(memory_bytes_max)
        self._engine = broker.engine
        self._streams = broker.streams
        self._tracing = broker.tracing
        self.brokers = [broker]
        """All that hold messages: the broker itself, and the front."""
        self.data: DataSessions | None = None
        """Its requests and answers take memory, too."""
        self._links = links
        self._log = node_log
        self._was: str | None = None
        """The reason at the last look."""

    @property
    def reason(self) -> str | None:
        """The reason for which publishers must wait; None if they may continue."""
        return LOW_ON_MEMORY if self.alarm.raised else self._log.holds_back

    def published(self, link: ClientLink) -> None:
        # The log concerns clients that the broker itself serves; the root holds the others back in its own time.
        is_direct = link.client is None or link.client.broker.engine is self._engine
        reason = self.reason if is_direct else LOW_ON_MEMORY if self.alarm.raised else None
        if reason is not None and not link.blocked:
            self._links.block(link, reason)
        elif is_direct and self._log.rests and not link.paced:
            self._links.pace(link)

    def watch(self) -> None:
        """To be called when anything may have changed."""
        coming_bytes = self._links.incomplete.total_bytes + (0 if self.data is None else self.data.held_bytes)
        held_bytes, held_messages = self._streams.held_bytes, 0
        for broker in self.brokers:
            coming_bytes += broker.uncommitted.size_bytes + broker.state.tables_bytes
            held_bytes += broker.engine.held_bytes
            held_messages += broker.engine.held_messages
        # Data of incomplete messages, which may come from held-back publishers, does not keep them so by itself. Nor do
        # the tables: publishers that are held back would make no room in them.
        if coming_bytes:
            held_bytes += min(coming_bytes, self.alarm.mark_bytes // 2)
        if self.alarm.update(held_bytes, held_messages):
            if self.alarm.raised:
                log.warning(
                    "memory alarm: messages take %d bytes, and memory_bytes_max is %d; publishing connections are "
                    "blocked: add consumers, or raise memory_bytes_max",
                    held_bytes,
                    self.alarm.mark_bytes,
                )
            else:
                log.info("memory alarm cleared: publishing connections are unblocked")
        reason = LOW_ON_MEMORY if self.alarm.raised else self._log.holds_back
        if reason != self._was:
            if reason is None:
                self._links.unblock_all()
                self._tracing.note("publishers-go-on", reason=self._was)
            else:
                self._tracing.note("publishers-wait", reason=reason)
            self._was = reason
        if self._links.has_paced and not self._log.rests:
            self._links.unpace_all()
